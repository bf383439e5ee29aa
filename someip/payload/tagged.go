package payload

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A tag (someip.md 5.7) is two bytes in network order: the wire type in bits 14
// to 12, the data id below.
const (
	maskDataID    = 0x0FFF
	wireTypeShift = 12

	wireComplex  = 4 // the length field has the configured width
	wireComplex1 = 5 // … 1, 2 or 4 bytes
	wireComplex2 = 6
	wireComplex4 = 7
)

// tagged reads members by their data ids, in any order, up to the end of the
// scope.
func (d *decoder) tagged(l *Layout) (any, error) {
	v := make(map[string]any, len(l.Members))
	for d.More() {
		start := d.Offset()
		b := d.Next(2)
		if d.Err() != nil {
			return nil, d.Err()
		}
		tag := binary.BigEndian.Uint16(b)
		id, wire := tag&maskDataID, tag>>wireTypeShift&7
		m := l.byDataID(id)
		if m == nil {
			if d.strict {
				return nil, fail(start, ErrMalformed, "data id 0x%x is not known", id)
			}
			d.skip(l, wire)
			continue
		}
		if _, twice := v[m.Name]; twice {
			return nil, at(fail(start, ErrMalformed, "data id 0x%x twice", id), m.Name)
		}
		width, nested, ok := taggedWidth(m.Layout, wire)
		if !ok {
			return nil, at(fail(start, ErrMalformed, "wire type %d", wire), m.Name)
		}
		member, err := d.value(m.Layout, width, nested)
		if err != nil {
			return nil, at(err, m.Name)
		}
		v[m.Name] = member
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	for _, m := range l.Members {
		if _, ok := v[m.Name]; !ok && !m.Optional {
			return nil, at(fail(d.Offset(), ErrTruncated, "missing"), m.Name)
		}
	}
	return v, nil
}

func (l *Layout) byDataID(id uint16) *Member {
	for i := range l.Members {
		if l.Members[i].DataID == id {
			return &l.Members[i]
		}
	}
	return nil
}

// taggedWidth returns the width of the length field that a wire type announces,
// and of those of arrays nested below.
func taggedWidth(l *Layout, wire uint16) (width, nested uint8, ok bool) {
	if l.Kind.Scalar() {
		return 0, 0, wire < wireComplex && 1<<wire == l.Width
	}
	switch wire {
	case wireComplex:
		return l.LengthWidth, 0, l.LengthWidth > 0
	case wireComplex1, wireComplex2, wireComplex4:
		width = 1 << (wire - wireComplex1)
		return width, width, true
	default:
		return 0, 0, false
	}
}

// skip skips a member that the layout does not know.
func (d *decoder) skip(l *Layout, wire uint16) {
	if wire < wireComplex {
		d.Skip(1 << wire)
		return
	}
	width := l.configuredWidth()
	if wire > wireComplex {
		width = 1 << (wire - wireComplex1)
	}
	d.Skip(d.length(width))
}

// configuredWidth is the width of length fields in a struct of tagged members:
// that of the first member which has one.
func (l *Layout) configuredWidth() uint8 {
	for _, m := range l.Members {
		if !m.Layout.Kind.Scalar() && m.Layout.LengthWidth > 0 {
			return m.Layout.LengthWidth
		}
	}
	return 4
}

// tagged writes a member with its tag.
func (e *encoder) tagged(l *Layout, m Member, v any) error {
	start := len(e.b)
	e.zeros(2)
	wire := uint16(wireComplex)
	var err error
	switch {
	case m.Layout.Kind.Scalar():
		wire = uint16(bits.TrailingZeros8(m.Layout.Width))
		err = e.value(m.Layout, v, 0, 0)
	case !l.DynamicLength:
		err = e.value(m.Layout, v, m.Layout.LengthWidth, 0)
	default:
		wire, err = e.shortest(m.Layout, v)
	}
	if err == nil {
		binary.BigEndian.PutUint16(e.b[start:], wire<<wireTypeShift|m.DataID)
	}
	return err
}

// shortest writes a value with the smallest length field that can count it, and
// returns the wire type that says so. Arrays nested in an array get length
// fields of the same width (someip.md 5.7).
func (e *encoder) shortest(l *Layout, v any) (uint16, error) {
	start := len(e.b)
	if err := e.value(l, v, 4, 4); err != nil {
		return 0, err
	}
	n := number(e.b[start:start+4], l.LittleEndian)
	width, wire := uint8(1), uint16(wireComplex1)
	switch {
	case n > math.MaxUint16:
		return wireComplex4, nil
	case n > math.MaxUint8:
		width, wire = 2, wireComplex2
	}
	if l.Kind == Array && l.Elem.Kind == Array {
		e.b = e.b[:start]
		return wire, e.value(l, v, width, width)
	}
	content := e.b[start+4:]
	e.b = appendNumber(e.b[:start], width, n, l.LittleEndian)
	e.b = append(e.b, content...)
	return wire, nil
}
