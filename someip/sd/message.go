package sd

import (
	"encoding/binary"

	"carisma.dev/gateway/someip"
)

// Flags are the flags of a service discovery message.
type Flags uint8

// Flags of a message.
const (
	FlagReboot      Flags = 0x80 // sender restarted and its session counter has not wrapped since (RB-2)
	FlagUnicast     Flags = 0x40 // sender can receive unicast: always set
	FlagInitialData Flags = 0x20 // explicit initial data control supported
)

const (
	entrySize    = 16
	flagsSize    = 4                             // flags and reserved bytes
	fixedSize    = flagsSize + 4 + 4             // SD payload without entries and options
	minLength    = 8 + fixedSize                 // least SOME/IP Length (7.1)
	entriesAt    = someip.HeaderSize + flagsSize // offset of the entries length
	maxOptions   = 256                           // what the index of an entry can reach
	maxTTL       = 0xFF_FFFF                     // 24 bits
	interfaceVer = 1                             // interface version of service discovery
)

// TTLForever as time to live means "until stop or reboot".
const TTLForever uint32 = maxTTL

// Message is a service discovery message with its SOME/IP envelope.
type Message struct {
	Client  uint16 // 0; some stacks set a prefix, receivers do not care
	Session uint16 // of the SOME/IP header; 1 to 0xFFFF
	Flags   Flags
	Entries []Entry
	Options []Option
	// OptionErr tells that the options array was malformed from len(Options)
	// on. Entries that refer to what is lost are invalid, the others are good.
	OptionErr error
}

// Parse reads the service discovery message at the start of b, a datagram from
// the SD port, and returns what follows it. See Message.Parse.
func Parse(b []byte) (m Message, rest []byte, err error) {
	rest, err = m.Parse(b)
	return m, rest, err
}

// Parse reads the service discovery message at the start of b into m, whose
// slices it reuses, and returns what follows it in the datagram. Data of options
// is a view of b.
//
// It is lenient as 9.5 asks: entries of unknown type are kept for others to skip
// (case 46); a malformed option loses itself and those behind it, not the
// message (OptionErr); unknown options are kept as raw bytes (case 37); bytes
// behind the options array are ignored. What is wrong with single entries is for
// Runs and the state machine to find out.
//
// Errors are *someip.ParseError: those of someip.ParseMessage, and ErrNotSD,
// ErrEntriesLength, ErrOptionsLength. All memory taken is in proportion to len(b).
func (m *Message) Parse(b []byte) (rest []byte, err error) {
	m.Entries, m.Options, m.OptionErr = m.Entries[:0], m.Options[:0], nil
	env, rest, err := someip.ParseMessage(b)
	if err != nil {
		return nil, err
	}
	if env.Service != someip.ServiceSD || env.Method != someip.MethodSD {
		return rest, parseError(0, ErrNotSD) // case 14
	}
	if err := env.Validate(); err != nil {
		return rest, err
	}
	if env.InterfaceVersion != interfaceVer || env.Type != someip.Notification || env.Code != someip.OK {
		return rest, parseError(13, ErrNotSD)
	}
	if env.Length < minLength {
		return rest, parseError(4, someip.ErrLength)
	}
	m.Client, m.Session, m.Flags = env.Client, env.Session, Flags(env.Payload[0])

	entries, tail, ok := lengthPrefixed(env.Payload[flagsSize:])
	if !ok || len(entries)%entrySize != 0 {
		return rest, parseError(entriesAt, ErrEntriesLength)
	}
	options, _, ok := lengthPrefixed(tail)
	if !ok {
		return rest, parseError(entriesAt+4+len(entries), ErrOptionsLength)
	}
	for ; len(entries) > 0; entries = entries[entrySize:] { // case 44
		m.Entries = append(m.Entries, parseEntry(entries))
	}
	at := entriesAt + 4 + len(m.Entries)*entrySize + 4
	for len(options) > 0 {
		o, n, err := parseOption(options)
		if err != nil {
			m.OptionErr = parseError(at, err)
			break
		}
		m.Options = append(m.Options, o)
		options, at = options[n:], at+n
	}
	return rest, nil
}

// lengthPrefixed splits b into the array whose length in bytes precedes it and
// what follows. The comparison is in 64 bits, no length can wrap.
func lengthPrefixed(b []byte) (array, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// Append appends the message with its envelope to b, which it returns unchanged
// with ErrRange if a value has no place in the message.
func (m *Message) Append(b []byte) ([]byte, error) {
	size := m.size()
	if len(m.Options) > maxOptions {
		return b, ErrRange
	}
	start := len(b)
	out := someip.Header{
		Service: someip.ServiceSD, Method: someip.MethodSD, Length: uint32(8 + size),
		Client: m.Client, Session: m.Session,
		ProtocolVersion: someip.ProtocolVersion, InterfaceVersion: interfaceVer, Type: someip.Notification,
	}.Append(b)
	out = append(out, byte(m.Flags), 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(m.Entries)*entrySize))
	for i := range m.Entries {
		if !m.Entries[i].encodable() {
			return b, ErrRange
		}
		out = m.Entries[i].append(out)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(start+someip.HeaderSize+size-len(out)-4))
	for i := range m.Options {
		if !m.Options[i].encodable() {
			return b, ErrRange
		}
		out = m.Options[i].append(out)
	}
	return out, nil
}

// size returns the bytes of the SD payload.
func (m *Message) size() int {
	n := fixedSize + len(m.Entries)*entrySize
	for i := range m.Options {
		n += m.Options[i].size()
	}
	return n
}

// Runs returns the two runs of options that e refers to, as views of m.Options,
// and false if a run reaches beyond the array: the entry is then invalid (7.2).
// The index of an empty run is not looked at.
func (m *Message) Runs(e *Entry) (first, second []Option, ok bool) {
	first, ok1 := m.run(e.Index1, e.Count1)
	second, ok2 := m.run(e.Index2, e.Count2)
	return first, second, ok1 && ok2
}

func (m *Message) run(index, count uint8) ([]Option, bool) {
	if count == 0 {
		return nil, true
	}
	from, to := int(index), int(index)+int(count)
	if to > len(m.Options) {
		return nil, false
	}
	return m.Options[from:to:to], true
}

func parseError(offset int, reason error) error {
	return &someip.ParseError{Offset: offset, Reason: reason}
}
