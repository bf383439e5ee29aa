package capture

import (
	"fmt"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Transport is the protocol that carried a message, by its IP protocol number.
type Transport uint8

// Transports.
const (
	TCP Transport = 6
	UDP Transport = 17
)

// String returns the name of the protocol.
func (t Transport) String() string {
	switch t {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	default:
		return fmt.Sprintf("protocol %d", uint8(t))
	}
}

// Flow is one direction of a conversation.
type Flow struct {
	Transport Transport
	From, To  netip.AddrPort
}

// String returns the flow as "udp 10.0.0.1:30490 > 224.244.224.245:30490".
func (f Flow) String() string { return fmt.Sprintf("%v %v > %v", f.Transport, f.From, f.To) }

// Multicast reports whether it goes to a group.
func (f Flow) Multicast() bool { return f.To.Addr().IsMulticast() }

// Position is where in a capture something is.
type Position struct {
	// Frame is the number of the frame, from 1. A message in several TCP segments
	// has that of the last of them.
	Frame int
	Time  time.Time
	// Offset counts the bytes from the start of the datagram's payload; on TCP from
	// where the capture has the stream from.
	Offset int64
}

// String returns the position as "frame 12, byte 40".
func (p Position) String() string { return fmt.Sprintf("frame %d, byte %d", p.Frame, p.Offset) }

// Record is a message of a capture, or what stands in the place of one.
type Record struct {
	Position
	Flow
	VLAN []uint16 // ids of the tags, outermost first
	// Message is what was parsed: its header where there is one, the payload only
	// if it is whole. The bytes are the reader's no longer.
	Message someip.Message
	// Bytes are those of the whole message; with Err, those that could not be read.
	Bytes []byte
	// Err is what is wrong, nil if nothing is: what [someip.ParseMessage] and
	// [someip.Header.Validate] say (the message is whole if Message.Length fits
	// Bytes), or a *GapError.
	Err error
}

// String says where the record is: "frame 12, byte 40, udp 10.0.0.1:1 > 10.0.0.2:2".
func (r Record) String() string { return fmt.Sprintf("%v, %v", r.Position, r.Flow) }

// GapError says that bytes of a TCP stream are not in the capture. What comes
// before the next recognised message is lost too.
type GapError struct{ Bytes int64 }

// Error implements error.
func (e *GapError) Error() string {
	return fmt.Sprintf("capture: %d bytes of the stream are missing", e.Bytes)
}
