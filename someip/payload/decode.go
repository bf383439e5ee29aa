package payload

import (
	"bytes"
	"math"
)

// decoder reads Go values as a layout says.
type decoder struct {
	*Reader
	strict bool
	left   int // elements that may still come
}

// value reads a value. The length field has the given width, which a TLV tag may
// choose; nested is the width of the length fields of arrays below, 0 for what
// the layout says (someip.md 5.7).
func (d *decoder) value(l *Layout, width, nested uint8) (any, error) {
	d.Align(int(l.Align))
	d.SetByteOrder(l.LittleEndian, l.LittleEndian)
	switch {
	case l.Kind.Scalar():
		return d.scalar(l)
	case l.Kind == Union:
		return d.union(l, width)
	}
	if width == 0 {
		d.enter()
		v, err := d.content(l, width, nested)
		d.leave()
		return v, err
	}
	scope := d.Begin(width)
	v, err := d.content(l, width, nested)
	if err == nil && d.strict && d.Remaining() > 0 {
		err = fail(d.Offset(), ErrMalformed, "%d surplus bytes", d.Remaining())
	}
	d.End(scope)
	return v, err
}

func (d *decoder) scalar(l *Layout) (any, error) {
	at := d.Offset()
	v := d.Uint(l.Width)
	if d.Err() != nil {
		return nil, d.Err()
	}
	return d.number(l, v, int(l.Width)*8, at)
}

// number returns the Go value of a number of some bits.
func (d *decoder) number(l *Layout, v uint64, bits, at int) (any, error) {
	switch {
	case l.Kind == Bool:
		if d.strict && v > 1 {
			return nil, fail(at, ErrMalformed, "boolean %d", v)
		}
		return v&1 != 0, nil
	case l.Kind == Int || l.Kind == Enum && l.Signed:
		return signExtend(v, bits), nil
	case l.Kind == Float && l.Width == 4:
		return math.Float32frombits(uint32(v)), nil
	case l.Kind == Float:
		return math.Float64frombits(v), nil
	default:
		return v, nil
	}
}

// content reads what a length field counts.
func (d *decoder) content(l *Layout, width, nested uint8) (any, error) {
	if d.Err() != nil {
		return nil, d.Err()
	}
	switch l.Kind {
	case String, Bytes:
		return d.string(l, width)
	case Array:
		return d.array(l, nested)
	case Map:
		return d.pairs(l)
	default:
		if l.tagged() {
			return d.tagged(l)
		}
		return d.members(l)
	}
}

func (d *decoder) string(l *Layout, width uint8) (any, error) {
	n := d.Remaining()
	if l.Size > 0 && (width == 0 || n < int(l.Size)) {
		n = int(l.Size)
	}
	if l.Max > 0 && uint64(n) > uint64(l.Max) {
		return nil, fail(d.Offset(), ErrRange, "%d bytes, up to %d allowed", n, l.Max)
	}
	if l.Kind == Bytes {
		return bytes.Clone(d.Next(n)), d.Err()
	}
	text := d.text(nil, n, l.Text, decodeMode{fixed: l.Size > 0, strict: d.strict})
	return string(text), d.Err()
}

func (d *decoder) array(l *Layout, nested uint8) (any, error) {
	list := []any{}
	width := l.Elem.LengthWidth
	if nested > 0 && l.Elem.Kind == Array {
		width = nested
	}
	count := int(l.Count)
	for i := 0; i < count || count == 0 && d.More(); i++ {
		if err := d.another(l, i); err != nil {
			return nil, err
		}
		v, err := d.value(l.Elem, width, nested)
		if err != nil {
			return nil, at(err, index(i))
		}
		list = append(list, v)
	}
	return list, nil
}

// another counts an element.
func (d *decoder) another(l *Layout, i int) error {
	if l.Max > 0 && i >= int(l.Max) {
		return fail(d.Offset(), ErrRange, "more than %d elements", l.Max)
	}
	if d.left--; d.left < 0 {
		return fail(d.Offset(), ErrRange, "too many elements in all")
	}
	return nil
}

func (d *decoder) pairs(l *Layout) (any, error) {
	list := []Entry{}
	for i := 0; d.More(); i++ {
		if err := d.another(l, i); err != nil {
			return nil, err
		}
		key, err := d.value(l.Key, l.Key.LengthWidth, 0)
		if err != nil {
			return nil, at(at(err, "key"), index(i))
		}
		value, err := d.value(l.Elem, l.Elem.LengthWidth, 0)
		if err != nil {
			return nil, at(at(err, "value"), index(i))
		}
		list = append(list, Entry{key, value})
	}
	return lastOfEach(list), nil
}

// lastOfEach keeps the last entry of each key (someip.md 5.6).
func lastOfEach(list []Entry) []Entry {
	last := make(map[any]int, len(list))
	for i, p := range list {
		last[identity(p.Key)] = i
	}
	if len(last) == len(list) {
		return list
	}
	kept := list[:0]
	for i, p := range list {
		if last[identity(p.Key)] == i {
			kept = append(kept, p)
		}
	}
	return kept
}

// identity returns what tells keys apart: their bits, also of those that a Go
// map cannot hold or finds different from themselves.
func identity(key any) any {
	switch k := key.(type) {
	case []byte:
		return string(k)
	case float32:
		return math.Float32bits(k)
	case float64:
		return math.Float64bits(k)
	}
	return key
}

func (d *decoder) members(l *Layout) (any, error) {
	v := make(map[string]any, len(l.Members))
	var run bitRun
	for i, m := range l.Members {
		var member any
		var err error
		if m.Layout.Bits > 0 {
			member, err = d.bits(l, i, &run)
		} else {
			run = bitRun{}
			member, err = d.value(m.Layout, m.Layout.LengthWidth, 0)
		}
		if err != nil {
			return nil, at(err, m.Name)
		}
		v[m.Name] = member
	}
	return v, nil
}

func (d *decoder) union(l *Layout, width uint8) (any, error) {
	var typ uint64
	if l.TypeFirst {
		typ = number(d.Next(int(l.Width)), l.LittleEndian)
	}
	n := int(l.Max)
	if width > 0 {
		at := d.Offset()
		length := number(d.Next(int(width)), l.LittleEndian)
		if length > math.MaxInt32 {
			return nil, fail(at, ErrTruncated, "length %d", length)
		}
		n = int(length)
	}
	if !l.TypeFirst {
		typ = number(d.Next(int(l.Width)), l.LittleEndian)
	}
	scope := d.narrow(n)
	v := Alternative{Type: uint32(typ)}
	if d.Err() == nil && typ > 0 && typ <= uint64(len(l.Members)) {
		m := l.Members[typ-1]
		var err error
		if v.Value, err = d.value(m.Layout, m.Layout.LengthWidth, 0); err != nil {
			return nil, at(err, m.Name)
		}
	}
	d.End(scope)
	return v, d.Err()
}
