package transcode

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A tag (someip.md 5.7) is two bytes: the wire type in bits 14 to 12 and the
// data id below, always in network order.
const (
	tagSize       = 2
	maskDataID    = 0x0FFF
	wireTypeShift = 12

	wireComplex  = 4 // the length field has the configured width
	wireComplex1 = 5 // … 1, 2 or 4 bytes
	wireComplex2 = 6
	wireComplex4 = 7
)

// taggedToProto translates members that are found by data id, in any order, up
// to end.
func (p *program) taggedToProto(r *run, dst []byte, off, end int) ([]byte, int, *Error) {
	base := r.pushSegments(len(p.fields))
	for off < end {
		if end-off < tagSize {
			return dst, off, truncated(off, tagSize, end-off)
		}
		at := off
		tag := binary.BigEndian.Uint16(r.src[off:])
		off += tagSize
		wire := tag >> wireTypeShift & 7
		i := p.byDataID(tag & maskDataID)
		if i < 0 {
			var err *Error
			if off, err = p.skipTagged(r.src, off, end, wire); err != nil {
				return dst, off, err
			}
			continue
		}
		f := &p.fields[i]
		if r.segments[base+i].end > 0 {
			return dst, off, malformed(at, "data id 0x%x twice", tag&maskDataID).at(f.name)
		}
		width, err := f.taggedWidth(wire, at)
		if err != nil {
			return dst, off, err.at(f.name)
		}
		start := len(dst)
		if dst, off, err = f.toProto(r, dst, off, end, width, f.explicit); err != nil {
			return dst, off, err.at(f.name)
		}
		// A member that has its default value leaves an empty segment: one past
		// the real place, so that it counts as seen.
		r.segments[base+i] = segment{start + 1, len(dst) + 1}
	}
	for i := range p.fields {
		s := &r.segments[base+i]
		if s.end == 0 && !p.fields[i].optional {
			return dst, off, malformed(off, "missing").at(p.fields[i].name)
		}
		if s.end > 0 {
			s.start, s.end = s.start-1, s.end-1
		}
	}
	return p.putInOrder(r, dst, base), off, nil
}

// byDataID returns the index of a field, -1 if there is none.
func (p *program) byDataID(id uint16) int {
	if i := int(id) - int(p.fields[0].dataID); i >= 0 && i < len(p.fields) && p.fields[i].dataID == id {
		return i // ids that count up are found at once
	}
	for i := range p.fields {
		if p.fields[i].dataID == id {
			return i
		}
	}
	return -1
}

// taggedWidth returns the width of the length field that a tag announces.
func (f *field) taggedWidth(wire uint16, at int) (uint8, *Error) {
	if f.op == opScalar {
		if wire >= wireComplex || 1<<wire != f.scalar.width {
			return 0, malformed(at, "wire type %d for a number of %d bytes", wire, f.scalar.width)
		}
		return 0, nil
	}
	switch wire {
	case wireComplex:
		return f.lengthWidth, nil
	case wireComplex1:
		return 1, nil
	case wireComplex2:
		return 2, nil
	case wireComplex4:
		return 4, nil
	default:
		return 0, malformed(at, "wire type %d for a member with a length", wire)
	}
}

// skipTagged returns the offset behind a member that the interface does not know.
func (p *program) skipTagged(src []byte, off, end int, wire uint16) (int, *Error) {
	if wire < wireComplex {
		size := 1 << wire
		if size > end-off {
			return off, truncated(off, size, end-off)
		}
		return off + size, nil
	}
	width := p.unknown.lengthWidth
	if wire > wireComplex {
		width = 1 << (wire - wireComplex1)
	}
	stop, _, err := p.unknown.scope(src, off, end, width)
	return stop, err
}

// taggedToSOMEIP appends a member with its tag.
func (f *field) taggedToSOMEIP(r *run, dst, b []byte, end int, s slot, dynamic bool) ([]byte, *Error) {
	at := len(dst)
	width := f.lengthWidth
	if dynamic {
		width = 4
	}
	dst, err := f.toSOMEIP(r, appendZeros(dst, tagSize), b, end, s, width)
	if err != nil {
		return dst, err
	}
	wire := uint16(wireComplex)
	switch {
	case f.op == opScalar:
		wire = uint16(bits.TrailingZeros8(f.scalar.width))
	case dynamic:
		dst, wire = f.shrinkLength(dst, at+tagSize)
	}
	binary.BigEndian.PutUint16(dst[at:], wire<<wireTypeShift|f.dataID)
	return dst, nil
}

// shrinkLength makes the length field of 4 bytes at a place as small as its
// value allows and returns the wire type that says so.
func (f *field) shrinkLength(dst []byte, at int) ([]byte, uint16) {
	n := readLength(dst[at:at+4], f.littleLength)
	width, wire := 1, uint16(wireComplex1)
	switch {
	case n > math.MaxUint16:
		return dst, wireComplex4
	case n > math.MaxUint8:
		width, wire = 2, wireComplex2
	}
	putNumber(dst[at:at+width], n, f.littleLength)
	return append(dst[:at+width], dst[at+4:]...), wire
}
