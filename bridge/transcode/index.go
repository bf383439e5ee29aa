package transcode

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// slot is where a member of a struct is in protobuf bytes.
type slot struct {
	value uint64 // of a number; start and end of a member with a length
	first uint32 // offset of the first occurrence
	count uint32 // of occurrences, which for a repeated one are not the elements
	which uint16 // alternative of a union, counted from 1
}

func (s slot) bounds() (start, end int) { return int(s.value >> 32), int(uint32(s.value)) }

// wire is one field of protobuf bytes.
type wire struct {
	number uint64
	typ    protowire.Type
	value  uint64 // as in slot
	end    int    // offset behind it
}

// read reads the field at an offset, which must be in b.
func (w *wire) read(b []byte, off int) *Error {
	at := off
	tag := uint64(b[off])
	off++
	if tag >= 0x80 {
		var n int
		if tag, n = protowire.ConsumeVarint(b[at:]); n < 0 {
			return malformed(at, "protobuf tag: %v", protowire.ParseError(n))
		}
		off = at + n
	}
	w.number, w.typ = tag>>3, protowire.Type(tag&7)
	if w.number == 0 || w.number > uint64(protowire.MaxValidNumber) {
		return malformed(at, "protobuf field number %d", w.number)
	}
	n := 0
	switch w.typ {
	case protowire.VarintType:
		if off < len(b) && b[off] < 0x80 {
			w.value, n = uint64(b[off]), 1
		} else {
			w.value, n = protowire.ConsumeVarint(b[off:])
		}
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b[off:])
		w.value = uint64(v)
	case protowire.Fixed64Type:
		w.value, n = protowire.ConsumeFixed64(b[off:])
	case protowire.BytesType:
		var size uint64
		if size, n = protowire.ConsumeVarint(b[off:]); n > 0 {
			off += n
			if size > uint64(len(b)-off) {
				return malformed(at, "protobuf length %d, %d bytes left", size, len(b)-off)
			}
			n = int(size)
			w.value = uint64(off)<<32 | uint64(off+n)
		}
	default:
		n = protowire.ConsumeFieldValue(protowire.Number(w.number), w.typ, b[off:])
	}
	if n < 0 {
		return malformed(at, "protobuf field %d: %v", w.number, protowire.ParseError(n))
	}
	w.end = off + n
	return nil
}

// index notes where each member is in b[off:end], in slots from base on.
func (p *program) index(r *run, b []byte, off, end int) (base int, err *Error) {
	base = len(r.slots)
	r.slots = slices.Grow(r.slots, len(p.fields))[:base+len(p.fields)]
	slots := r.slots[base:]
	clear(slots)
	var w wire
	for b = b[:end]; off < end; {
		if err := w.read(b, off); err != nil {
			return base, err
		}
		if t := p.lookup.find(w.number); t.field > 0 {
			i := t.field - 1
			n := &p.fields[i].node
			if t.alternative > 0 {
				n = &n.alternatives[t.alternative-1].node
			}
			if n.accepts(w.typ) {
				slots[i].note(&w, t.alternative, off)
			}
		}
		off = w.end
	}
	return base, nil
}

// accepts says that a value of the node may have the wire type. A field of
// another type counts as unknown, as in protobuf; arrays of numbers may be packed
// or not, whatever they are written as.
func (n *node) accepts(typ protowire.Type) bool {
	if uint64(typ) == n.tag&7 {
		return true
	}
	return n.op == opArray && n.elem.op == opScalar && (typ == protowire.BytesType || uint64(typ) == n.elem.tag&7)
}

// note adds an occurrence: the last one counts, and another alternative of a
// union replaces the one before.
func (s *slot) note(w *wire, alternative uint16, off int) {
	if s.which != alternative {
		*s = slot{which: alternative}
	}
	if s.count == 0 {
		s.first = uint32(off)
	}
	s.value = w.value
	s.count++
}
