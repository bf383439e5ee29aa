package payload

import (
	"fmt"
	"math"
)

// Validate reports the first thing in the layout that cannot be: an *Error
// wrapping ErrLayout with the path of the member.
func (l *Layout) Validate() error {
	v := validator{done: map[*Layout]bool{}, sizes: sizes{}}
	if err := v.check(l, true); err != nil {
		return err
	}
	_, err := v.sizes.min(l)
	return err
}

type validator struct {
	done  map[*Layout]bool
	sizes sizes
}

func bad(format string, args ...any) error {
	return &Error{Offset: -1, Err: ErrLayout, Reason: fmt.Sprintf(format, args...)}
}

// check checks a layout and all below it. Bounded says that something outside
// tells where it ends: the message, or the length of a tag or union.
func (v validator) check(l *Layout, bounded bool) error {
	if l == nil {
		return bad("no layout")
	}
	if v.done[l] {
		return nil
	}
	v.done[l] = true
	if a := l.Align; a > 32 || a&(a-1) != 0 {
		return bad("alignment of %d bytes", a)
	}
	if w := l.LengthWidth; w > 4 || w == 3 {
		return bad("length field of %d bytes", w)
	}
	if l.Kind.Scalar() {
		return checkScalar(l)
	}
	switch l.Kind {
	case String, Bytes:
		return checkString(l)
	case Array:
		return v.checkArray(l)
	case Map:
		return v.checkMap(l)
	case Struct:
		return v.checkStruct(l, bounded)
	case Union:
		return v.checkUnion(l)
	default:
		return bad("kind %v", l.Kind)
	}
}

func checkScalar(l *Layout) error {
	w := l.Width
	switch {
	case l.Kind == Bool && w != 1:
		return bad("bool of %d bytes", w)
	case l.Kind == Float && w != 4 && w != 8:
		return bad("float of %d bytes", w)
	case w != 1 && w != 2 && w != 4 && w != 8:
		return bad("%v of %d bytes", l.Kind, w)
	case l.Bits > w*8:
		return bad("%d bits in %d bytes", l.Bits, w)
	case l.Bits > 0 && l.Kind == Float:
		return bad("bits of a float")
	}
	return nil
}

func checkString(l *Layout) error {
	switch {
	case l.Size == 0 && l.LengthWidth == 0:
		return bad("%v without length field or size", l.Kind)
	case l.Size > math.MaxInt32:
		return bad("size of %d bytes", l.Size)
	case l.Kind == String && l.Text.Encoding > UTF16LE:
		return bad("encoding %d", l.Text.Encoding)
	case l.Kind == String && l.Size > 0 && int(l.Size) < l.Text.overhead():
		return bad("size of %d bytes, byte order mark and terminator take %d", l.Size, l.Text.overhead())
	}
	return nil
}

func (v validator) checkArray(l *Layout) error {
	if l.Count == 0 && l.LengthWidth == 0 {
		return bad("array without length field or count")
	}
	if l.Count > math.MaxInt32 {
		return bad("count of %d", l.Count)
	}
	return v.checkElem(l.Elem, l.Count == 0)
}

// checkElem checks the elements of an array: those of a dynamic one are counted
// by the bytes they take, so they must take some.
func (v validator) checkElem(elem *Layout, dynamic bool) error {
	if err := v.check(elem, false); err != nil {
		return at(err, "[]")
	}
	if elem.Bits > 0 {
		return at(bad("packed bits outside a struct"), "[]")
	}
	if !dynamic {
		return nil
	}
	n, err := v.sizes.min(elem)
	if err == nil && n == 0 {
		err = bad("elements may take no bytes")
	}
	return at(err, "[]")
}

func (v validator) checkMap(l *Layout) error {
	if l.LengthWidth == 0 {
		return bad("map without length field")
	}
	if err := v.checkElem(l.Key, false); err != nil {
		return err
	}
	if l.Key.Kind > Bytes {
		return bad("%v as key", l.Key.Kind)
	}
	if err := v.checkElem(l.Elem, false); err != nil {
		return err
	}
	key, _ := v.sizes.min(l.Key)
	value, err := v.sizes.min(l.Elem)
	if err == nil && key+value == 0 {
		err = bad("entries may take no bytes")
	}
	return err
}

func (v validator) checkStruct(l *Layout, bounded bool) error {
	if l.tagged() && !bounded && l.LengthWidth == 0 {
		return bad("optional members need a length field around them")
	}
	ids := map[uint16]bool{}
	for _, m := range l.Members {
		if err := checkMember(l, m, ids); err != nil {
			return at(err, m.Name)
		}
		if err := v.check(m.Layout, m.Tagged); err != nil {
			return at(err, m.Name)
		}
		if m.Tagged && (m.Layout.Bits > 0 || m.Layout.Align > 1) {
			return at(bad("optional member with packed bits or alignment"), m.Name)
		}
		if m.Tagged && !m.Layout.Kind.Scalar() && m.Layout.LengthWidth == 0 && !l.DynamicLength {
			return at(bad("optional member without length field"), m.Name)
		}
		if m.Tagged && m.Layout.Kind == Union && m.Layout.TypeFirst {
			return at(bad("optional union with its type before the length"), m.Name)
		}
	}
	return nil
}

func checkMember(l *Layout, m Member, ids map[uint16]bool) error {
	switch {
	case m.Tagged != l.tagged():
		return bad("all members need a data id or none")
	case m.Optional && !m.Tagged:
		return bad("an optional member needs a data id")
	case m.Tagged && m.DataID > 0xFFF:
		return bad("data id 0x%x, up to 0xfff allowed", m.DataID)
	case m.Tagged && ids[m.DataID]:
		return bad("data id 0x%x is that of another member too", m.DataID)
	}
	ids[m.DataID] = true
	return nil
}

func (v validator) checkUnion(l *Layout) error {
	if w := l.Width; w != 1 && w != 2 && w != 4 {
		return bad("type field of %d bytes", w)
	}
	if l.LengthWidth == 0 && l.Max == 0 {
		return bad("union without length field needs the size of its largest alternative")
	}
	if l.Max > math.MaxInt32 {
		return bad("largest alternative of %d bytes", l.Max)
	}
	for _, m := range l.Members {
		if m.Tagged || m.Optional {
			return at(bad("alternative with a data id"), m.Name)
		}
		if err := v.check(m.Layout, true); err != nil {
			return at(err, m.Name)
		}
		if m.Layout.Bits > 0 {
			return at(bad("packed bits outside a struct"), m.Name)
		}
	}
	return nil
}
