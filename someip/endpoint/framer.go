package endpoint

import (
	"errors"
	"fmt"

	"carisma.dev/gateway/someip"
)

// Errors of a message stream. After one the connection is of no use (TCP-5).
var (
	// ErrFraming: what is found where a header must be is none.
	ErrFraming = errors.New("endpoint: stream framing lost")
	// ErrOversize: the Length field announces more than is accepted.
	ErrOversize = errors.New("endpoint: message too long")
)

// DefaultMaxMessage is the longest TCP message accepted: 10 MiB of payload and
// the header (TCP-4).
const DefaultMaxMessage = 10<<20 + someip.HeaderSize

// Direction says who wrote a stream, which decides the form of its cookies.
type Direction uint8

// Directions.
const (
	FromClient Direction = iota
	FromServer
)

const (
	initialSpace = 4 << 10
	keepSpace    = 64 << 10 // a larger buffer is given up once its message is done
)

// cookie is the magic cookie that the writer of the stream sends.
func (d Direction) cookie() string {
	if d == FromServer {
		return someip.ServerCookie
	}
	return someip.ClientCookie
}

func (d Direction) opposite() Direction { return FromClient + FromServer - d }

// Framer cuts a byte stream into SOME/IP messages. Its buffer grows with what
// was received and never by a Length field. The zero Framer reads what a client
// writes, with the default limit.
//
//	for {
//		n, err := conn.Read(f.Space())
//		f.Received(n)
//		for {
//			msg, err := f.Next() // nil, nil: read more
//			…
type Framer struct {
	// From says who writes the stream.
	From Direction
	// MaxMessage is the longest message accepted, header included, in bytes.
	// 0: [DefaultMaxMessage].
	MaxMessage int
	// Cookies allows to search for the next magic cookie where framing is lost,
	// before any was seen.
	Cookies bool
	// Skipped counts the bytes that such searches have dropped.
	Skipped uint64

	buf        []byte
	start, end int // unread bytes are buf[start:end]
	seeking    bool
}

// Space returns room to read into, at least one byte. It invalidates the
// message that Next gave last.
func (f *Framer) Space() []byte {
	switch {
	case f.start == f.end:
		f.start, f.end = 0, 0
		if cap(f.buf) > keepSpace {
			f.buf = nil
		}
	case f.end == len(f.buf) && f.start > 0:
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start = 0
	}
	if f.end == len(f.buf) {
		grown := make([]byte, max(initialSpace, 2*len(f.buf)))
		f.end = copy(grown, f.buf[:f.end])
		f.buf = grown
	}
	return f.buf[f.end:]
}

// Received says how many bytes were put into Space.
func (f *Framer) Received(n int) { f.end += n }

// Next returns the next whole message, cookies left out, or nil when more must
// be read. The message is valid until Space is called. An error wraps
// [ErrFraming] or [ErrOversize] and is final.
func (f *Framer) Next() ([]byte, error) {
	for {
		if f.seeking && !f.seek() {
			return nil, nil
		}
		rest := f.buf[f.start:f.end]
		if len(rest) < someip.HeaderSize {
			return nil, nil
		}
		if string(rest[:someip.HeaderSize]) == f.From.cookie() {
			f.Cookies = true // case 16: who sends cookies can be resynchronised by them
			f.start += someip.HeaderSize
			continue
		}
		size, err := f.check(rest)
		if err != nil {
			if !f.Cookies {
				return nil, err
			}
			f.seeking = true
			f.skip(1)
			continue
		}
		if size > len(rest) {
			return nil, nil
		}
		f.start += size
		return rest[:size:size], nil
	}
}

// check reads a header and returns the size of its message. All that it refuses
// means that this is no header, or that the peer is not to be trusted (TCP-5).
func (f *Framer) check(b []byte) (int, error) {
	h, err := someip.ParseHeader(b) // HDR-1: case 2
	if err == nil {
		err = h.Validate()
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrFraming, err)
	}
	if h.Type.TP() { // TCP-6
		return 0, fmt.Errorf("%w: segment on a stream", ErrFraming)
	}
	limit := f.MaxMessage
	if limit == 0 {
		limit = DefaultMaxMessage
	}
	if h.WireSize() > uint64(limit) { // TCP-4
		return 0, fmt.Errorf("%w: %d bytes", ErrOversize, h.WireSize())
	}
	return int(h.WireSize()), nil
}

// seek drops bytes up to the next cookie.
func (f *Framer) seek() bool {
	n, found := someip.FindCookie(f.buf[f.start:f.end], f.From.cookie())
	f.skip(n)
	f.seeking = !found
	return found
}

func (f *Framer) skip(n int) {
	f.start += n
	f.Skipped += uint64(n)
}
