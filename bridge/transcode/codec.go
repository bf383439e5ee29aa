// Package transcode translates payloads between SOME/IP bytes and protobuf wire
// bytes.
//
// A [Codec] is compiled once from a type and its deployment. It reads one format
// and appends the other in one pass: no tree of values, no reflection, no
// allocation beyond the growth of the destination.
//
// What it writes is canonical: protobuf as protobuf-go's deterministic marshal
// of the same message, except that a map keeps the order it has on SOME/IP.
// What it reads may be anything that the formats allow.
package transcode

import (
	"fmt"
	"math"
	"sync"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip/payload"
)

// Codec translates one message. It is immutable and safe for concurrent use.
type Codec struct {
	program *program
	pool    sync.Pool // of *run
}

// Compile returns the codec of a struct or argument list. The error is that of a
// type or deployment that cannot be translated, with its place in the source.
func Compile(s *model.Struct) (*Codec, error) {
	layout, err := s.SOMEIPLayout()
	if err != nil {
		return nil, err
	}
	c := compiler{programs: map[*payload.Layout]*program{}}
	p, err := c.program(s, layout)
	if err != nil {
		return nil, fmt.Errorf("%v: %s: %w", s.Pos, s.Name, err)
	}
	codec := &Codec{program: p}
	codec.pool.New = func() any { return new(run) }
	return codec, nil
}

// run is the working memory of one translation.
type run struct {
	src   []byte // what is read
	base  int    // where the payload starts in the destination
	depth int

	slots    []slot    // stack: for each struct being read from protobuf where its members are
	segments []segment // stack: for each struct being written to protobuf where its members are
	merged   []byte    // submessages that came in several parts, put together
}

func (c *Codec) start(src []byte, base int) *run {
	r, _ := c.pool.Get().(*run) // the pool holds nothing else
	r.src, r.base, r.depth = src, base, 0
	return r
}

func (c *Codec) finish(r *run) {
	r.src = nil
	r.slots, r.segments, r.merged = r.slots[:0], r.segments[:0], r.merged[:0]
	if cap(r.merged) <= maxKept {
		c.pool.Put(r)
	}
}

// MaxSize is how large in bytes a translation may become. An empty submessage of
// two bytes stands for all the default values of a struct, so that the size of
// what is read does not limit what is written.
const MaxSize = 16 << 20

// check says whether another struct may begin.
func (r *run) check(dst []byte, off int) *Error {
	switch {
	case r.depth >= payload.MaxDepth:
		return malformed(off, "nested deeper than %d", payload.MaxDepth)
	case len(dst)-r.base > MaxSize:
		return tooLarge(len(dst)-r.base, MaxSize)
	}
	return nil
}

// maxKept is the most working memory in bytes that a codec keeps for the next run.
const maxKept = 64 << 10

// ToProto appends to dst the protobuf bytes of a SOME/IP payload. Bytes behind
// the last member are ignored (HDR-6). On an error, which is an *Error, it
// returns dst as it was.
func (c *Codec) ToProto(dst, someip []byte) ([]byte, error) {
	if len(someip) > math.MaxInt32 {
		return dst, tooLarge(len(someip), math.MaxInt32)
	}
	r := c.start(someip, len(dst))
	out, _, err := c.program.toProto(r, dst, 0, len(someip))
	c.finish(r)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// ToSOMEIP appends to dst the SOME/IP payload of protobuf bytes. Members may be
// in any order and more than once; those that are absent have their default
// value, unknown ones are skipped. On an error, which is an *Error, it returns
// dst as it was.
func (c *Codec) ToSOMEIP(dst, proto []byte) ([]byte, error) {
	if len(proto) > math.MaxInt32 {
		return dst, tooLarge(len(proto), math.MaxInt32)
	}
	r := c.start(proto, len(dst))
	out, err := c.program.toSOMEIP(r, dst, proto, 0, len(proto))
	c.finish(r)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func tooLarge(n, limit int) *Error {
	return &Error{Offset: -1, Err: ErrRange, Reason: fmt.Sprintf("%d bytes, up to %d allowed", n, limit)}
}
