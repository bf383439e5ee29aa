package transcode

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// toSOMEIP appends the SOME/IP bytes of the struct in the protobuf bytes b.
func (p *program) toSOMEIP(r *run, dst, b []byte, off, end int) ([]byte, *Error) {
	if err := r.check(dst, off); err != nil {
		return dst, err
	}
	r.depth++
	base, err := p.index(r, b, off, end)
	if err == nil {
		dst, err = p.fieldsToSOMEIP(r, dst, b, end, base)
	}
	r.slots = r.slots[:base]
	r.depth--
	return dst, err
}

func (p *program) fieldsToSOMEIP(r *run, dst, b []byte, end, base int) ([]byte, *Error) {
	bits := len(dst) // where the current run of packed bits starts
	var err *Error
	for i := range p.fields {
		f := &p.fields[i]
		s := r.slots[base+i]
		if f.align > 1 {
			dst = appendZeros(dst, padding(len(dst)-r.base, int(f.align)))
		}
		switch {
		case p.tagged:
			if s.count > 0 || !f.optional {
				dst, err = f.taggedToSOMEIP(r, dst, b, end, s, p.dynamic)
			}
		case f.op != opScalar:
			dst, err = f.toSOMEIP(r, dst, b, end, s, f.lengthWidth)
		case f.scalar.load == loadBits:
			if f.firstBit == 0 {
				bits = len(dst)
				dst = appendZeros(dst, int(f.runBytes))
			}
			var v uint64
			if v, err = f.scalar.toSOMEIP(s.value, int(s.first)); err == nil {
				f.scalar.writeBits(dst[bits:], int(f.firstBit), v)
			}
		default:
			var v uint64
			if v, err = f.scalar.toSOMEIP(s.value, int(s.first)); err == nil {
				dst = f.scalar.write(dst, v)
			}
		}
		if err != nil {
			return dst, err.at(f.name)
		}
	}
	return dst, nil
}

func appendZeros(dst []byte, n int) []byte {
	dst = slices.Grow(dst, n)
	clear(dst[len(dst) : len(dst)+n])
	return dst[:len(dst)+n]
}

// toSOMEIP appends a value whose occurrences start at s in the protobuf bytes
// b[:end] of its struct. The length field has the given width.
func (n *node) toSOMEIP(r *run, dst, b []byte, end int, s slot, lengthWidth uint8) ([]byte, *Error) {
	switch n.op {
	case opScalar:
		v, err := n.scalar.toSOMEIP(s.value, int(s.first))
		if err != nil {
			return dst, err
		}
		return n.scalar.write(dst, v), nil
	case opUnion:
		return n.unionToSOMEIP(r, dst, b, end, s, lengthWidth)
	default: // with a length, or a size
	}
	at := len(dst)
	content := at + int(lengthWidth)
	dst = appendZeros(dst, int(lengthWidth))
	var err *Error
	switch n.op {
	case opString, opBytes:
		dst, err = n.stringToSOMEIP(dst, b, s)
	case opArray:
		dst, err = n.arrayToSOMEIP(r, dst, b, end, s)
	default:
		dst, err = n.structToSOMEIP(r, dst, b, end, s)
	}
	if err == nil {
		err = putLength(dst[at:content], len(dst)-content, n.littleLength, int(s.first))
	}
	return dst, err
}

// putLength writes a length field that says n bytes.
func putLength(field []byte, n int, little bool, offset int) *Error {
	if len(field) == 0 {
		return nil
	}
	putNumber(field, uint64(n), little)
	if limit := uint64(1)<<(8*len(field)) - 1; uint64(n) > limit {
		return outOfRange(offset, "%d bytes, up to %d allowed", n, limit)
	}
	return nil
}

// putNumber writes a length or type field of 1, 2 or 4 bytes.
func putNumber(field []byte, v uint64, little bool) {
	switch len(field) {
	case 1:
		field[0] = byte(v)
	case 2:
		if little {
			binary.LittleEndian.PutUint16(field, uint16(v))
		} else {
			binary.BigEndian.PutUint16(field, uint16(v))
		}
	default:
		if little {
			binary.LittleEndian.PutUint32(field, uint32(v))
		} else {
			binary.BigEndian.PutUint32(field, uint32(v))
		}
	}
}

func (n *node) stringToSOMEIP(dst, b []byte, s slot) ([]byte, *Error) {
	start, end := s.bounds()
	at := len(dst)
	if n.op == opBytes {
		dst = append(dst, b[start:end]...)
	} else {
		var err error
		if dst, err = n.text.Append(dst, b[start:end]); err != nil {
			return dst, badText(err, start)
		}
	}
	size := len(dst) - at
	if n.max > 0 && uint64(size) > n.max {
		return dst, outOfRange(start, "%d bytes, up to %d allowed", size, n.max)
	}
	if n.size > 0 {
		if size > n.size {
			return dst, outOfRange(start, "%d bytes, up to %d allowed", size, n.size)
		}
		dst = appendZeros(dst, n.size-size)
	}
	return dst, nil
}

// structToSOMEIP appends a submessage. One that came in several parts is the
// merge of them, which in protobuf is their concatenation.
func (n *node) structToSOMEIP(r *run, dst, b []byte, end int, s slot) ([]byte, *Error) {
	if s.count <= 1 {
		start, stop := s.bounds()
		return n.program.toSOMEIP(r, dst, b, start, stop)
	}
	base := len(r.merged)
	var w wire
	for off := int(s.first); s.count > 0; {
		if err := w.read(b[:end], off); err != nil {
			return dst, err
		}
		if w.number == n.tag>>3 && w.typ == protowire.BytesType {
			r.merged = append(r.merged, b[w.value>>32:uint32(w.value)]...)
			s.count--
		}
		off = w.end
	}
	merged := r.merged
	dst, err := n.program.toSOMEIP(r, dst, merged, base, len(merged))
	r.merged = r.merged[:base]
	return dst, err
}

// arrayToSOMEIP appends the elements of all occurrences, packed or not. An empty
// array of fixed size has default elements, as an absent message has.
func (n *node) arrayToSOMEIP(r *run, dst, b []byte, end int, s slot) ([]byte, *Error) {
	count := 0
	var w wire
	for off := int(s.first); s.count > 0; {
		if err := w.read(b[:end], off); err != nil {
			return dst, err
		}
		if w.number == n.tag>>3 && n.accepts(w.typ) {
			var err *Error
			if n.elem.op == opScalar && w.typ == protowire.BytesType {
				dst, err = n.packedToSOMEIP(r, dst, b, w, &count)
			} else {
				dst, err = n.elemToSOMEIP(r, dst, b, slot{value: w.value, first: uint32(off), count: 1}, &count)
			}
			if err != nil {
				return dst, err
			}
			s.count--
		}
		off = w.end
	}
	if n.count > 0 && count == 0 {
		for count < n.count {
			var err *Error
			if dst, err = n.elemToSOMEIP(r, dst, b, slot{}, &count); err != nil {
				return dst, err
			}
		}
	}
	switch {
	case n.count > 0 && count != n.count:
		return dst, outOfRange(int(s.first), "%d elements, exactly %d allowed", count, n.count)
	case n.max > 0 && uint64(count) > n.max:
		return dst, outOfRange(int(s.first), "%d elements, up to %d allowed", count, n.max)
	}
	return dst, nil
}

func (n *node) elemToSOMEIP(r *run, dst, b []byte, s slot, count *int) ([]byte, *Error) {
	if n.elem.align > 1 {
		dst = appendZeros(dst, padding(len(dst)-r.base, int(n.elem.align)))
	}
	dst, err := n.elem.toSOMEIP(r, dst, b, len(b), s, n.elem.lengthWidth)
	if err != nil {
		return dst, err.atIndex(*count)
	}
	*count++
	return dst, nil
}

// packedToSOMEIP appends the numbers of a packed field.
func (n *node) packedToSOMEIP(r *run, dst, b []byte, w wire, count *int) ([]byte, *Error) {
	off, stop := slot{value: w.value}.bounds()
	elem := &n.elem.scalar
	for off < stop {
		at := off
		var v uint64
		size := 1
		switch elem.form.wireType() {
		case protowire.Fixed32Type:
			var v32 uint32
			v32, size = protowire.ConsumeFixed32(b[off:stop])
			v = uint64(v32)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b[off:stop])
		default:
			if v = uint64(b[off]); v >= 0x80 {
				v, size = protowire.ConsumeVarint(b[off:stop])
			}
		}
		if size < 0 {
			return dst, malformed(at, "protobuf number: %v", protowire.ParseError(size)).atIndex(*count)
		}
		off += size
		v, err := elem.toSOMEIP(v, at)
		if err != nil {
			return dst, err.atIndex(*count)
		}
		if n.elem.align > 1 {
			dst = appendZeros(dst, padding(len(dst)-r.base, int(n.elem.align)))
		}
		dst = elem.write(dst, v)
		*count++
	}
	return dst, nil
}

// unionToSOMEIP appends the alternative that is set, or type 0 if none is.
func (n *node) unionToSOMEIP(r *run, dst, b []byte, end int, s slot, lengthWidth uint8) ([]byte, *Error) {
	at := len(dst)
	dst = appendZeros(dst, int(lengthWidth)+int(n.typeWidth))
	content := len(dst)
	lengthAt, typeAt := at, at+int(lengthWidth)
	if n.typeFirst {
		lengthAt, typeAt = at+int(n.typeWidth), at
	}
	putNumber(dst[typeAt:typeAt+int(n.typeWidth)], uint64(s.which), n.littleLength)
	if s.which > 0 {
		f := &n.alternatives[s.which-1]
		if f.align > 1 {
			dst = appendZeros(dst, padding(len(dst)-r.base, int(f.align)))
		}
		var err *Error
		if dst, err = f.toSOMEIP(r, dst, b, end, s, f.lengthWidth); err != nil {
			return dst, err.at(f.name)
		}
	}
	size := len(dst) - content
	if n.max > 0 && uint64(size) > n.max {
		return dst, outOfRange(int(s.first), "%d bytes, up to %d allowed", size, n.max)
	}
	if lengthWidth == 0 {
		return appendZeros(dst, int(n.max)-size), nil
	}
	return dst, putLength(dst[lengthAt:lengthAt+int(lengthWidth)], size, n.littleLength, int(s.first))
}
