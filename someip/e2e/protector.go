package e2e

import "carisma.dev/gateway/someip"

// Protector writes the E2E headers of one data stream.
type Protector struct {
	format
	next uint32 // counter of the next message
}

// NewProtector returns a protector whose first message carries the counter that
// the profile begins with: 1 in P02 and P22, 0 in the others.
func NewProtector(c Config) (*Protector, error) {
	f, err := newFormat(c)
	if err != nil {
		return nil, err
	}
	return &Protector{format: f, next: f.first}, nil
}

// Protect overwrites the E2E header in data, which has room for it at Offset. The
// bits next to a 4 bit counter are kept where they belong to the application. It
// fails with ErrShort or ErrLong and then changes nothing and counts nothing.
func (p *Protector) Protect(data []byte) error { return p.protect(data, p.offset) }

// ProtectMessage is Protect for a whole SOME/IP message whose payload has room
// for the header, as the applications of vsomeip send it (12.5).
func (p *Protector) ProtectMessage(msg []byte) error {
	if len(msg) < someip.HeaderSize {
		return ErrShort
	}
	return p.protect(msg[p.start:], p.inMessage())
}

// AppendMessage appends the message to b with an E2E header inserted, which its
// Length field counts. b must not overlap the payload. It fails with ErrShort if
// the payload ends ahead of Offset and with ErrLong; then it returns b as it was.
func (p *Protector) AppendMessage(b []byte, m someip.Message) ([]byte, error) {
	if len(m.Payload) < p.offset {
		return b, ErrShort
	}
	if err := p.fits(m.Size()+p.size-p.start, p.inMessage()); err != nil {
		return b, err
	}
	begin := len(b)
	m.Length = uint32(someip.HeaderSize - requestIDOffset + p.size + len(m.Payload))
	b = m.Header.Append(b)
	b = append(b, m.Payload[:p.offset]...)
	var room [20]byte // the largest header
	b = append(b, room[:p.size]...)
	b = append(b, m.Payload[p.offset:]...)
	return b, p.protect(b[begin+p.start:], p.inMessage())
}

func (p *Protector) protect(data []byte, at int) error {
	if err := p.fits(len(data), at); err != nil {
		return err
	}
	p.put(data, at, p.next)
	p.next = uint32((uint64(p.next) + 1) % p.modulo)
	return nil
}

// Counter returns the counter that the next message will carry.
func (p *Protector) Counter() uint32 { return p.next }

// SetCounter sets the counter that the next message carries: to go on after a
// restart, or for a peer that expects another first value. It fails with
// ErrCounter if the profile has no such counter.
func (p *Protector) SetCounter(counter uint32) error {
	if uint64(counter) >= p.modulo {
		return ErrCounter
	}
	p.next = counter
	return nil
}
