package transcode

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"carisma.dev/gateway/someip/payload"
)

// toProto appends the protobuf bytes of the struct in r.src[off:end] and returns
// the offset behind its last member.
func (p *program) toProto(r *run, dst []byte, off, end int) ([]byte, int, *Error) {
	err := r.check(dst, off)
	if err != nil {
		return dst, off, err
	}
	r.depth++
	switch {
	case p.tagged:
		dst, off, err = p.taggedToProto(r, dst, off, end)
	case p.order != nil:
		base := r.pushSegments(len(p.fields))
		dst, off, err = p.fieldsToProto(r, dst, off, end, base)
		if err == nil {
			dst = p.putInOrder(r, dst, base)
		}
	default:
		dst, off, err = p.fieldsToProto(r, dst, off, end, -1)
	}
	r.depth--
	return dst, off, err
}

// fieldsToProto translates the members in the order of declaration. With
// segments it notes where each went.
func (p *program) fieldsToProto(r *run, dst []byte, off, end, segments int) ([]byte, int, *Error) {
	bits := off // where the current run of packed bits starts
	var err *Error
	for i := range p.fields {
		f := &p.fields[i]
		start := len(dst)
		if f.align > 1 {
			off += padding(off, int(f.align))
		}
		switch {
		case f.op != opScalar:
			dst, off, err = f.toProto(r, dst, off, end, f.lengthWidth, f.explicit)
			if err != nil {
				return dst, off, err.at(f.name)
			}
		case f.scalar.load == loadBits:
			if f.firstBit == 0 {
				bits = off
				off += int(f.runBytes)
			}
			if off > end {
				return dst, off, truncated(bits, off-bits, end-bits).at(f.name)
			}
			if dst, err = f.scalarToProto(dst, f.scalar.readBits(r.src[bits:off], int(f.firstBit)), bits, f.explicit); err != nil {
				return dst, off, err.at(f.name)
			}
		default:
			next := off + int(f.scalar.width)
			if next > end {
				return dst, off, truncated(off, int(f.scalar.width), max(end-off, 0)).at(f.name)
			}
			if dst, err = f.scalarToProto(dst, f.scalar.read(r.src[off:next]), off, f.explicit); err != nil {
				return dst, off, err.at(f.name)
			}
			off = next
		}
		if segments >= 0 {
			r.segments[segments+i] = segment{start, len(dst)}
		}
	}
	return dst, off, nil
}

// padding is the number of bytes from an offset in the payload to the next
// multiple of n from the start of the message.
func padding(off, n int) int { return -(off + payload.HeaderSize) & (n - 1) }

// scalarToProto appends a number with its tag.
func (n *node) scalarToProto(dst []byte, v uint64, off int, explicit bool) ([]byte, *Error) {
	if !n.scalar.plain {
		var err *Error
		if v, err = n.scalar.toProto(v, off); err != nil {
			return dst, err
		}
	}
	if v == 0 && !explicit {
		return dst, nil
	}
	dst = appendVarint(dst, n.tag)
	switch protowire.Type(n.tag & 7) {
	case protowire.Fixed32Type:
		return binary.LittleEndian.AppendUint32(dst, uint32(v)), nil
	case protowire.Fixed64Type:
		return binary.LittleEndian.AppendUint64(dst, v), nil
	default:
		return appendVarint(dst, v), nil
	}
}

// toProto appends a value with its tag. The length field has the given width: a
// TLV tag may say another than the deployment.
func (n *node) toProto(r *run, dst []byte, off, end int, lengthWidth uint8, explicit bool) ([]byte, int, *Error) {
	switch n.op {
	case opScalar:
		next := off + int(n.scalar.width)
		if next > end {
			return dst, off, truncated(off, int(n.scalar.width), max(end-off, 0))
		}
		out, err := n.scalarToProto(dst, n.scalar.read(r.src[off:next]), off, explicit)
		return out, next, err
	case opUnion:
		return n.unionToProto(r, dst, off, end, lengthWidth)
	default: // with a length, or a size
	}
	stop, off, err := n.scope(r.src, off, end, lengthWidth)
	if err != nil {
		return dst, off, err
	}
	switch n.op {
	case opString:
		return n.stringToProto(r, dst, off, stop, explicit)
	case opBytes:
		if off == stop && !explicit {
			return dst, stop, nil
		}
		dst = appendVarint(appendVarint(dst, n.tag), uint64(stop-off))
		return append(dst, r.src[off:stop]...), stop, nil
	case opArray:
		return n.arrayToProto(r, dst, off, stop, lengthWidth)
	default:
		dst, off, err = n.structToProto(r, dst, off, stop)
		if lengthWidth > 0 {
			off = stop // skip what a newer sender added (someip.md 5.2)
		}
		return dst, off, err
	}
}

// scope reads the length field of a value and returns where the value ends, or
// the latest place where it may, and where it starts.
func (n *node) scope(src []byte, off, end int, lengthWidth uint8) (stop, start int, err *Error) {
	stop = end
	if lengthWidth > 0 {
		start = off + int(lengthWidth)
		if start > end {
			return 0, off, truncated(off, int(lengthWidth), max(end-off, 0))
		}
		length := readLength(src[off:start], n.littleLength)
		if length > uint64(end-start) {
			return 0, off, malformed(off, "length %d, %d bytes left", length, end-start)
		}
		off, stop = start, start+int(length)
	}
	if n.size > 0 {
		if n.size > stop-off {
			return 0, off, truncated(off, n.size, max(stop-off, 0))
		}
		if lengthWidth == 0 {
			stop = off + n.size
		}
	}
	return stop, off, nil
}

// readLength returns the number in a length, type or tag field.
func readLength(b []byte, little bool) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		if little {
			return uint64(binary.LittleEndian.Uint16(b))
		}
		return uint64(binary.BigEndian.Uint16(b))
	default:
		if little {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return uint64(binary.BigEndian.Uint32(b))
	}
}

func (n *node) stringToProto(r *run, dst []byte, off, stop int, explicit bool) ([]byte, int, *Error) {
	if n.max > 0 && uint64(stop-off) > n.max {
		return dst, stop, outOfRange(off, "%d bytes, up to %d allowed", stop-off, n.max)
	}
	start := len(dst)
	dst = appendVarint(dst, n.tag)
	m := len(dst)
	dst = reserve(dst, stop-off)
	content := len(dst)
	var err error
	if n.size > 0 {
		dst, err = n.text.AppendFixedText(dst, r.src[off:stop])
	} else {
		dst, err = n.text.AppendText(dst, r.src[off:stop])
	}
	if err != nil {
		return dst, stop, badText(err, off)
	}
	if len(dst) == content && !explicit {
		return dst[:start], stop, nil
	}
	return patch(dst, m, content), stop, nil
}

func (n *node) structToProto(r *run, dst []byte, off, end int) ([]byte, int, *Error) {
	dst = appendVarint(dst, n.tag)
	m := len(dst)
	dst = reserve(dst, n.least)
	content := len(dst)
	dst, off, err := n.program.toProto(r, dst, off, end)
	if err != nil {
		return dst, off, err
	}
	return patch(dst, m, content), off, nil
}

// unionToProto translates the alternative that the type field names. One that
// the interface does not know, and the empty type 0, leave the union unset.
func (n *node) unionToProto(r *run, dst []byte, off, end int, lengthWidth uint8) ([]byte, int, *Error) {
	header := int(lengthWidth) + int(n.typeWidth)
	if header > end-off {
		return dst, off, truncated(off, header, max(end-off, 0))
	}
	lengthAt, typeAt := off, off+int(lengthWidth)
	if n.typeFirst {
		lengthAt, typeAt = off+int(n.typeWidth), off
	}
	alternative := readLength(r.src[typeAt:typeAt+int(n.typeWidth)], n.littleLength)
	length := n.max
	if lengthWidth > 0 {
		length = readLength(r.src[lengthAt:lengthAt+int(lengthWidth)], n.littleLength)
	}
	off += header
	if length > uint64(end-off) {
		return dst, off, malformed(lengthAt, "length %d, %d bytes left", length, end-off)
	}
	stop := off + int(length)
	if alternative == 0 || alternative > uint64(len(n.alternatives)) {
		return dst, stop, nil
	}
	f := &n.alternatives[alternative-1]
	if f.align > 1 {
		off += padding(off, int(f.align))
	}
	dst, _, err := f.toProto(r, dst, off, stop, f.lengthWidth, true)
	if err != nil {
		return dst, stop, err.at(f.name)
	}
	return dst, stop, nil
}
