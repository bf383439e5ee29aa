package tp

import (
	"encoding/binary"

	"carisma.dev/gateway/someip"
)

// HeaderSize is the size of the TP header in bytes.
const HeaderSize = 4

// unit is what offsets are counted in, in bytes.
const unit = 16

// Header follows the SOME/IP header of a segment.
//
//	 0               1               2               3
//	+-------------------------------------------------------+-----+-+
//	|              Offset in units of 16 bytes              |  0  |M|
//	+-------------------------------------------------------+-----+-+
type Header struct {
	Offset uint32 // in bytes, a multiple of 16: where in the payload the segment belongs
	More   bool   // other segments follow this one
}

// ParseHeader reads the TP header at the start of the payload of a segment. The
// reserved bits are ignored. It fails with someip.ErrShort.
func ParseHeader(payload []byte) (Header, error) {
	if len(payload) < HeaderSize {
		return Header{}, &someip.ParseError{Offset: someip.HeaderSize + len(payload), Reason: someip.ErrShort}
	}
	v := binary.BigEndian.Uint32(payload)
	return Header{Offset: v &^ (unit - 1), More: v&1 != 0}, nil
}

// Append appends the header to b. Of Offset the part that is no multiple of 16 is
// not sent.
func (h Header) Append(b []byte) []byte {
	v := h.Offset &^ (unit - 1)
	if h.More {
		v |= 1
	}
	return binary.BigEndian.AppendUint32(b, v)
}
