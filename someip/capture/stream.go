package capture

import (
	"bytes"
	"errors"
	"slices"

	"carisma.dev/gateway/someip"
)

// stream is one direction of a TCP connection.
type stream struct {
	flow  Flow
	vlan  []uint16
	limit int // longest message

	next    uint32    // sequence number of the byte behind data
	data    []byte    // in order, not yet taken
	offset  int64     // of data[0] in the stream
	ahead   []segment // by sequence number, behind a hole
	waiting int       // bytes in ahead

	known bool // SOME/IP by its port
	found bool // a message was found
	lost  bool // the framing: data begins anywhere

	last    Position
	skipped uint64
}

type segment struct {
	seq  uint32
	data []byte
	at   Position
}

// Beyond these a hole is taken for lost: TCP keeps no more under way.
const (
	maxAhead      = 1 << 10
	maxAheadBytes = 4 << 20
)

func (c *stream) held() int { return len(c.data) + c.waiting }

// take puts a segment where it belongs, and adds the messages that are whole.
func (c *stream) take(seq uint32, data []byte, at Position, add func(Record)) {
	if len(data) == 0 {
		return
	}
	if int32(seq-c.next) > 0 {
		i, _ := slices.BinarySearchFunc(c.ahead, seq, func(s segment, seq uint32) int { return int(int32(s.seq - seq)) })
		c.ahead = slices.Insert(c.ahead, i, segment{seq, bytes.Clone(data), at})
		c.waiting += len(data)
		if len(c.ahead) > maxAhead || c.waiting > maxAheadBytes {
			c.jump(add)
		}
		return
	}
	c.append(seq, data, at, add)
	c.catchUp(add)
}

// append takes what is new of a segment that begins at next or before it.
func (c *stream) append(seq uint32, data []byte, at Position, add func(Record)) {
	old := int(c.next - seq)
	if old >= len(data) {
		return // sent again
	}
	data = data[old:]
	if at.Frame > c.last.Frame { // what came early is whole only now
		c.last = at
	}
	before := len(c.data)
	c.data = append(c.data, data...)
	c.next += uint32(len(data))
	if before > 0 && (c.lost || !c.known && !c.found) && !looksLikeStart(c.data, c.limit) {
		c.skip(before) // without framing a message begins with a segment
	}
	c.messages(add)
}

// catchUp takes the segments that came early and whose time has come.
func (c *stream) catchUp(add func(Record)) {
	for len(c.ahead) > 0 && int32(c.ahead[0].seq-c.next) <= 0 {
		s := c.ahead[0]
		c.ahead = c.ahead[1:]
		c.waiting -= len(s.data)
		c.append(s.seq, s.data, s.at, add)
	}
}

// jump gives a hole up.
func (c *stream) jump(add func(Record)) {
	hole := int64(c.ahead[0].seq - c.next)
	if c.known || c.found {
		c.fault(&GapError{Bytes: hole}, add)
	}
	c.skip(len(c.data))
	c.lost = true
	c.offset += hole
	c.next = c.ahead[0].seq
	c.catchUp(add)
}

// end adds what is left when nothing follows.
func (c *stream) end(add func(Record)) {
	for len(c.ahead) > 0 {
		c.jump(add)
	}
	if len(c.data) > 0 && !c.lost && (c.known || c.found) {
		c.fault(&someip.ParseError{Offset: len(c.data), Reason: someip.ErrShort}, add)
	}
	c.skip(len(c.data))
}

// messages takes all whole messages from the front of data.
func (c *stream) messages(add func(Record)) {
	for len(c.data) > 0 {
		if c.lost && !c.resync() {
			return
		}
		m, err := parseStream(c.data, c.limit)
		switch {
		case err == nil:
			c.found, c.lost = true, false
			size := m.Size()
			whole := slices.Clone(c.data[:size])
			m.Payload = whole[someip.HeaderSize:size:size]
			c.record(m, whole, nil, add)
			c.drop(size)
		case errors.Is(err, someip.ErrShort):
			return
		case c.found || c.known:
			c.lost = true
			c.fault(err, add)
		default:
			c.skip(len(c.data))
		}
	}
}

// parseStream reads a message from the front of a stream. It fails with ErrShort if
// more bytes are needed, with ErrTooLong above the limit, with what ParseMessage
// and Validate say else.
func parseStream(b []byte, limit int) (someip.Message, error) {
	h, err := someip.ParseHeader(b)
	if err != nil {
		return someip.Message{Header: h}, err
	}
	if err := h.Validate(); err != nil {
		return someip.Message{Header: h}, err
	}
	if h.WireSize() > uint64(limit) {
		return someip.Message{Header: h}, &someip.ParseError{Offset: 4, Reason: someip.ErrTooLong}
	}
	m, _, err := someip.ParseMessage(b)
	return m, err
}

func looksLikeStart(b []byte, limit int) bool {
	_, err := parseStream(b, limit)
	return err == nil || errors.Is(err, someip.ErrShort)
}

// resync looks for a place to go on from: where a segment begins with a message,
// or behind a magic cookie (CK-3). It reports whether there is one.
func (c *stream) resync() bool {
	if len(c.data) >= someip.HeaderSize && looksLikeStart(c.data, c.limit) {
		return true
	}
	for i := range c.data {
		if someip.IsCookie(c.data[i:]) {
			c.skip(i)
			return true
		}
	}
	if len(c.data) >= someip.HeaderSize {
		c.skip(len(c.data)) // the next segment is another chance
	}
	return false
}

// fault adds a record of an error with the bytes at hand.
func (c *stream) fault(err error, add func(Record)) {
	h, _ := someip.ParseHeader(c.data)
	c.record(someip.Message{Header: h}, slices.Clone(c.data), err, add)
}

func (c *stream) record(m someip.Message, b []byte, err error, add func(Record)) {
	at := c.last
	at.Offset = c.offset
	add(Record{Position: at, Flow: c.flow, VLAN: c.vlan, Message: m, Bytes: b, Err: err})
}

func (c *stream) skip(n int) {
	if c.known || c.found {
		c.skipped += uint64(n)
	}
	c.drop(n)
}

func (c *stream) drop(n int) {
	c.offset += int64(n)
	if c.data = c.data[n:]; len(c.data) == 0 {
		c.data = nil
	}
}
