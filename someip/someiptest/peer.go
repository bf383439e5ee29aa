package someiptest

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// Patience is how long a [Peer] waits for what must come.
const Patience = 20 * time.Second

// Peer is a scripted peer: a UDP socket of a host that says what a test has it say.
// Whatever fails ends the test, so it is used by the goroutine of the test only.
type Peer struct {
	tb   testing.TB
	conn *net.UDPConn
	addr netip.AddrPort
}

// NewPeer opens a socket until the test ends. Port 0 is for the system to choose.
func NewPeer(tb testing.TB, local netip.AddrPort) *Peer {
	tb.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	return &Peer{tb, c, netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}
}

// Addr returns the address of the socket.
func (p *Peer) Addr() netip.AddrPort { return p.addr }

// Send sends one datagram.
func (p *Peer) Send(to netip.AddrPort, b []byte) {
	p.tb.Helper()
	if _, err := p.conn.WriteToUDPAddrPort(b, to); err != nil {
		p.tb.Fatal(err)
	}
}

// Receive returns the messages of the next datagram, and where it came from.
func (p *Peer) Receive() ([]someip.Message, netip.AddrPort) {
	p.tb.Helper()
	b, from := p.receive(Patience)
	if b == nil {
		p.tb.Fatal("peer: nothing came")
	}
	var msgs []someip.Message
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil {
			p.tb.Fatalf("peer: received % x: %v", b, err)
		}
		msgs, b = append(msgs, m), rest
	}
	return msgs, from
}

// ReceiveOne returns the only message of the next datagram, and where it came from.
func (p *Peer) ReceiveOne() (someip.Message, netip.AddrPort) {
	p.tb.Helper()
	msgs, from := p.Receive()
	if len(msgs) != 1 {
		p.tb.Fatalf("peer: %d messages in a datagram", len(msgs))
	}
	return msgs[0], from
}

// Nothing fails the test if a datagram is there. Call it when what must not come
// would have come: after the answer to something later.
func (p *Peer) Nothing() {
	p.tb.Helper()
	if b, from := p.receive(time.Millisecond); b != nil {
		p.tb.Fatalf("peer: received % x from %v", b, from)
	}
}

func (p *Peer) receive(wait time.Duration) ([]byte, netip.AddrPort) {
	p.tb.Helper()
	b := make([]byte, 65536)
	err := p.conn.SetReadDeadline(time.Now().Add(wait))
	if err != nil {
		p.tb.Fatal(err)
	}
	n, from, err := p.conn.ReadFromUDPAddrPort(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, netip.AddrPort{}
	case err != nil:
		p.tb.Fatal(err)
	}
	return b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
}

// SendSD sends a service discovery message with one entry that has these options,
// as the session's message of a host that has never restarted.
func (p *Peer) SendSD(to netip.AddrPort, session uint16, e sd.Entry, opts ...sd.Option) {
	p.tb.Helper()
	e.Count1 = uint8(len(opts))
	m := sd.Message{Session: session, Flags: sd.FlagReboot | sd.FlagUnicast, Entries: []sd.Entry{e}, Options: opts}
	b, err := m.Append(nil)
	if err != nil {
		p.tb.Fatal(err)
	}
	p.Send(to, b)
}

// ReceiveSD waits for a service discovery message with an entry of a type, and
// returns that entry with all options of the message.
func (p *Peer) ReceiveSD(want sd.EntryType) (sd.Entry, []sd.Option) {
	p.tb.Helper()
	for {
		raw, _ := p.Receive()
		for i := range raw {
			m, _, err := sd.Parse(raw[i].Append(nil))
			if err != nil {
				p.tb.Fatal(err)
			}
			for _, e := range m.Entries {
				if e.Type == want {
					return e, m.Options
				}
			}
		}
	}
}
