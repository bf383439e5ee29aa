package tp

import (
	"errors"
	"fmt"
	"time"

	"carisma.dev/gateway/someip"
)

const (
	// DefaultSegmentLength is the usual payload of a segment and the largest that
	// every peer accepts (TP-2, TP-11).
	DefaultSegmentLength = 1392
	// MaxSegmentLength is the largest payload of a segment that UDP can carry.
	MaxSegmentLength = 65472
)

var (
	// ErrSession is returned for a message without a session: the segments of two
	// such messages cannot be told apart (TP-4).
	ErrSession = errors.New("tp: message without session")
	// ErrSegmentLength is returned for a rule with a length that cannot be used.
	ErrSegmentLength = errors.New("tp: segment length")
)

// Rule says how the messages of one method or event are segmented (TP-3). The
// zero value is the default.
type Rule struct {
	// SegmentLength is the payload of each segment but the last in bytes, a
	// multiple of 16. 0 stands for DefaultSegmentLength. Only some peers accept more.
	SegmentLength int
	// Separation is the least time between two segments of a message. The package
	// does not use it: it is there for whoever sends.
	Separation time.Duration
}

// Validate reports a segment length that cannot be used, wrapping ErrSegmentLength.
func (r Rule) Validate() error {
	if r.SegmentLength < 0 || r.SegmentLength > MaxSegmentLength || r.SegmentLength%unit != 0 {
		return fmt.Errorf("%w: %d is not a multiple of %d up to %d", ErrSegmentLength, r.SegmentLength, unit, MaxSegmentLength)
	}
	return nil
}

// Segment returns a Segmenter for m. A message that fits a datagram is not
// segmented (TP-3). It fails with ErrSession, with someip.ErrTooLong if the Length
// field cannot express the whole message, with someip.ErrMessageType if m is a
// segment itself or of no known type, and like Validate.
//
// E2E protection is applied before (TP-12).
func (r Rule) Segment(m someip.Message) (Segmenter, error) {
	if err := r.Validate(); err != nil {
		return Segmenter{}, err
	}
	s := Segmenter{message: m, length: r.SegmentLength}
	if s.length == 0 {
		s.length = DefaultSegmentLength
	}
	switch {
	case !m.Type.Known() || m.Type.TP():
		return Segmenter{}, someip.ErrMessageType
	case uint64(len(m.Payload)) > someip.MaxPayload:
		return Segmenter{}, someip.ErrTooLong
	case m.CheckUDP() == nil:
		s.length = 0
	case m.Session == 0:
		return Segmenter{}, ErrSession
	}
	return s, nil
}

// Segmenter writes the datagrams of one message, in ascending order. It refers to
// the payload of the message, which must not change meanwhile.
type Segmenter struct {
	message someip.Message
	length  int // of a segment; 0: the message goes whole
	offset  int // of the next segment
}

// Append appends the next segment, or the whole message if it needs none, to b
// and reports whether another follows. All segments have the ids, type and return
// code of the message (TP-1). It must not be called after it reported false.
func (s *Segmenter) Append(b []byte) (_ []byte, more bool) {
	if s.length == 0 {
		return s.message.Append(b), false
	}
	data := s.message.Payload[s.offset:]
	more = len(data) > s.length
	if more {
		data = data[:s.length]
	}
	h := s.message.Header
	h.Type |= someip.FlagTP
	h.Length = uint32(someip.HeaderSize - 8 + HeaderSize + len(data))
	b = h.Append(b)
	b = Header{Offset: uint32(s.offset), More: more}.Append(b)
	s.offset += len(data)
	return append(b, data...), more
}

// Segments returns the number of datagrams that are still to come.
func (s *Segmenter) Segments() int {
	if s.length == 0 {
		return 1
	}
	return (len(s.message.Payload) - s.offset + s.length - 1) / s.length
}
