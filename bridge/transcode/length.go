package transcode

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// reserve makes room for the length of a content of about n bytes. The length
// is written when the content is there; where the guess was wrong the content
// moves by some bytes, which is cheaper than to size every message first.
func reserve(dst []byte, n int) []byte {
	switch {
	case n < 1<<7:
		return append(dst, 0)
	case n < 1<<14:
		return append(dst, 0, 0)
	default:
		dst = append(dst, 0, 0, 0)
		for n >>= 21; n > 0; n >>= 7 {
			dst = append(dst, 0)
		}
		return dst
	}
}

// patch writes the length of dst[content:] into the room at dst[at:content].
func patch(dst []byte, at, content int) []byte {
	n := len(dst) - content
	need := protowire.SizeVarint(uint64(n))
	if room := content - at; need != room {
		dst = slices.Grow(dst, max(need-room, 0))[:at+need+n]
		copy(dst[at+need:], dst[content:content+n])
	}
	binary.PutUvarint(dst[at:at+need], uint64(n))
	return dst
}

// segment is where a member went in the destination.
type segment struct{ start, end int }

func (r *run) pushSegments(n int) (base int) {
	base = len(r.segments)
	r.segments = slices.Grow(r.segments, n)[:base+n]
	clear(r.segments[base:])
	return base
}

// putInOrder moves the members that were just written into the order of their
// numbers, by way of the room behind them, and drops the segments from base on.
func (p *program) putInOrder(r *run, dst []byte, base int) []byte {
	segments := r.segments[base:]
	start, end := len(dst), len(dst)
	for _, s := range segments {
		if s.end > s.start {
			start = min(start, s.start)
		}
	}
	for _, i := range p.order {
		dst = append(dst, dst[segments[i].start:segments[i].end]...)
	}
	copy(dst[start:end], dst[end:])
	r.segments = r.segments[:base]
	return dst[:end]
}
