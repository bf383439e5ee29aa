package payload

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// encoder writes Go values as a layout says.
type encoder struct{ *Writer }

// unfit is the error of a Go value of the wrong type.
func unfit(l *Layout, v any) error {
	return &Error{Offset: -1, Err: ErrValue, Reason: fmt.Sprintf("%T for %v", v, l.Kind)}
}

func tooMuch(format string, args ...any) error {
	return &Error{Offset: -1, Err: ErrRange, Reason: fmt.Sprintf(format, args...)}
}

// value writes a value; width and nested are as for a decoder.
func (e *encoder) value(l *Layout, v any, width, nested uint8) error {
	e.Align(int(l.Align))
	e.SetByteOrder(l.LittleEndian, l.LittleEndian)
	switch {
	case l.Kind.Scalar():
		n, err := toNumber(l, v)
		if err == nil {
			e.Uint(l.Width, n)
		}
		return err
	case l.Kind == Union:
		return e.union(l, v, width)
	}
	m := e.Begin(width)
	if e.Err() == nil {
		if err := e.content(l, v, nested); err != nil {
			return err
		}
	}
	e.SetByteOrder(l.LittleEndian, l.LittleEndian)
	e.End(m)
	return e.Err()
}

func (e *encoder) content(l *Layout, v any, nested uint8) error {
	switch l.Kind {
	case String:
		s, ok := v.(string)
		if !ok {
			return unfit(l, v)
		}
		b, err := l.Text.Append(e.b, []byte(s))
		if err != nil {
			return &Error{Offset: -1, Err: ErrText, Reason: reason(err)}
		}
		return e.sized(l, b)
	case Bytes:
		b, ok := v.([]byte)
		if !ok {
			return unfit(l, v)
		}
		return e.sized(l, append(e.b, b...))
	case Array:
		return e.array(l, v, nested)
	case Map:
		return e.pairs(l, v)
	default:
		return e.members(l, v)
	}
}

// sized takes over b, which has the content of a string or bytes appended, if
// that has an allowed size.
func (e *encoder) sized(l *Layout, b []byte) error {
	n := len(b) - len(e.b)
	switch {
	case l.Max > 0 && uint64(n) > uint64(l.Max):
		return tooMuch("%d bytes, up to %d allowed", n, l.Max)
	case l.Size > 0 && n > int(l.Size):
		return tooMuch("%d bytes, up to %d allowed", n, l.Size)
	}
	e.b = b
	if l.Size > 0 {
		e.zeros(int(l.Size) - n)
	}
	return nil
}

func (e *encoder) array(l *Layout, v any, nested uint8) error {
	var n int
	var elem func(int) any
	switch list := v.(type) {
	case []any:
		n, elem = len(list), func(i int) any { return list[i] }
	case []byte:
		n, elem = len(list), func(i int) any { return uint64(list[i]) }
	default:
		return unfit(l, v)
	}
	switch {
	case l.Count > 0 && n != int(l.Count):
		return tooMuch("%d elements, exactly %d allowed", n, l.Count)
	case l.Max > 0 && n > int(l.Max):
		return tooMuch("%d elements, up to %d allowed", n, l.Max)
	}
	width := l.Elem.LengthWidth
	if nested > 0 && l.Elem.Kind == Array {
		width = nested
	}
	for i := range n {
		if err := e.value(l.Elem, elem(i), width, nested); err != nil {
			return at(err, index(i))
		}
	}
	return nil
}

func (e *encoder) pairs(l *Layout, v any) error {
	list, ok := v.([]Entry)
	if !ok {
		return unfit(l, v)
	}
	if l.Max > 0 && len(list) > int(l.Max) {
		return tooMuch("%d entries, up to %d allowed", len(list), l.Max)
	}
	for i, p := range list {
		if err := e.value(l.Key, p.Key, l.Key.LengthWidth, 0); err != nil {
			return at(at(err, "key"), index(i))
		}
		if err := e.value(l.Elem, p.Value, l.Elem.LengthWidth, 0); err != nil {
			return at(at(err, "value"), index(i))
		}
	}
	return nil
}

func (e *encoder) members(l *Layout, v any) error {
	values, ok := v.(map[string]any)
	if !ok {
		return unfit(l, v)
	}
	known := 0
	var run bitRun
	for i, m := range l.Members {
		member, present := values[m.Name]
		switch {
		case present:
			known++
		case m.Optional:
			continue
		default:
			return at(&Error{Offset: -1, Err: ErrValue, Reason: "missing"}, m.Name)
		}
		var err error
		switch {
		case m.Tagged:
			err = e.tagged(l, m, member)
		case m.Layout.Bits > 0:
			err = e.bits(l, i, &run, member)
		default:
			run = bitRun{}
			err = e.value(m.Layout, member, m.Layout.LengthWidth, 0)
		}
		if err != nil {
			return at(err, m.Name)
		}
	}
	if known < len(values) {
		return at(&Error{Offset: -1, Err: ErrValue, Reason: "no such member"}, unknown(l, values))
	}
	return nil
}

// unknown returns the first name that the struct does not have.
func unknown(l *Layout, values map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(l.Members, func(m Member) bool { return m.Name == name }) {
			return name
		}
	}
	return ""
}

func (e *encoder) union(l *Layout, v any, width uint8) error {
	u, ok := v.(Alternative)
	if !ok {
		return unfit(l, v)
	}
	if u.Type > uint32(len(l.Members)) || uint64(u.Type) > maxUint(l.Width) {
		return tooMuch("type %d, up to %d allowed", u.Type, len(l.Members))
	}
	if l.TypeFirst {
		e.Uint(l.Width, uint64(u.Type))
	}
	length := Mark{len(e.b), width}
	e.zeros(int(width))
	if !l.TypeFirst {
		e.Uint(l.Width, uint64(u.Type))
	}
	content := e.Begin(0)
	if u.Type > 0 && e.Err() == nil {
		m := l.Members[u.Type-1]
		if err := e.value(m.Layout, u.Value, m.Layout.LengthWidth, 0); err != nil {
			return at(err, m.Name)
		}
	}
	n := len(e.b) - content.at
	if l.Max > 0 && uint64(n) > uint64(l.Max) {
		return tooMuch("%d bytes, up to %d allowed", n, l.Max)
	}
	if width == 0 {
		e.zeros(int(l.Max) - n)
	}
	e.SetByteOrder(l.LittleEndian, l.LittleEndian)
	e.End(content)
	e.patch(length, n)
	return e.Err()
}

// toNumber returns the bits of a Go value that fits a number.
func toNumber(l *Layout, v any) (uint64, error) {
	switch l.Kind {
	case Bool:
		if b, ok := v.(bool); ok {
			if b {
				return 1, nil
			}
			return 0, nil
		}
		return 0, unfit(l, v)
	case Float:
		return toFloat(l, v)
	default: // an integer
	}
	bits := int(l.Width) * 8
	if l.Bits > 0 {
		bits = int(l.Bits)
	}
	signed, unsigned, negative, ok := integer(v)
	if !ok {
		return 0, unfit(l, v)
	}
	if l.Kind == Int || l.Kind == Enum && l.Signed {
		least, most := int64(math.MinInt64)>>(64-bits), uint64(math.MaxInt64)>>(64-bits)
		if negative && signed < least || !negative && unsigned > most {
			return 0, tooMuch("%v, %d to %d allowed", v, least, most)
		}
		return uint64(signed) & (math.MaxUint64 >> (64 - bits)), nil
	}
	if most := uint64(math.MaxUint64) >> (64 - bits); negative || unsigned > most {
		return 0, tooMuch("%v, 0 to %d allowed", v, most)
	}
	return unsigned, nil
}

func toFloat(l *Layout, v any) (uint64, error) {
	switch f := v.(type) {
	case float32:
		if l.Width == 4 {
			return uint64(math.Float32bits(f)), nil
		}
		return math.Float64bits(float64(f)), nil
	case float64:
		if l.Width == 8 {
			return math.Float64bits(f), nil
		}
		single := float32(f)
		if math.IsInf(float64(single), 0) && !math.IsInf(f, 0) {
			return 0, tooMuch("%g, up to %g allowed", f, float32(math.MaxFloat32))
		}
		return uint64(math.Float32bits(single)), nil
	}
	return 0, unfit(l, v)
}

// integer returns any Go integer in both readings.
func integer(v any) (signed int64, unsigned uint64, negative, ok bool) {
	switch n := v.(type) {
	case int:
		signed = int64(n)
	case int8:
		signed = int64(n)
	case int16:
		signed = int64(n)
	case int32:
		signed = int64(n)
	case int64:
		signed = n
	case uint:
		return int64(n), uint64(n), false, true
	case uint8:
		signed = int64(n)
	case uint16:
		signed = int64(n)
	case uint32:
		signed = int64(n)
	case uint64:
		return int64(n), n, false, true
	default:
		return 0, 0, false, false
	}
	return signed, uint64(signed), signed < 0, true
}
