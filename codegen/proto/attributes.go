package proto

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

// lengthWidth checks the bytes of a length field.
func (r *interfaceReader) lengthWidth(at model.Position, w uint32, none bool) uint8 {
	switch {
	case w == 1 || w == 2 || w == 4 || w == 0 && none:
		return uint8(w)
	case none:
		r.add(at, "0, 1, 2 or 4", "a length field of %d bytes does not exist", w)
	default:
		r.add(at, "1, 2 or 4", "a length field of %d bytes does not exist", w)
	}
	return 4
}

// array reads the deployment of an array or map.
func (r *interfaceReader) array(f protoreflect.FieldDescriptor, o *optionsv1.SomeipArray, little bool) model.SOMEIPType {
	t := model.SOMEIPType{LengthWidth: 4, Count: o.GetCount(), Max: o.GetMax(), LittleEndian: r.lengthOrder(little), DataID: -1}
	if o.GetCount() > 0 {
		t.LengthWidth = 0
		if o.GetMax() > 0 {
			r.add(r.memberAt(f, 2, 3), "count or max", "%s has both", f.Name())
		}
		if f.IsMap() {
			r.add(r.memberAt(f, 2, 2), "max", "the map %s cannot have an exact number of entries", f.Name())
		}
	}
	if o != nil && o.LengthWidth != nil {
		at := r.memberAt(f, 2, 1)
		t.LengthWidth = r.lengthWidth(at, o.GetLengthWidth(), true)
		if o.GetLengthWidth() == 0 && o.GetCount() == 0 {
			r.add(at, "1, 2 or 4, or 0 with a count", "the number of elements of %s would be unknown", f.Name())
		}
	}
	if w := t.LengthWidth; w > 0 && w < 4 && uint64(max(t.Max, t.Count)) >= 1<<(8*w) {
		r.add(r.memberAt(f, 2), "a larger length_width", "%d elements of %s do not fit a length field of %d bytes", max(t.Max, t.Count), f.Name(), w)
	}
	return t
}

var encodings = map[optionsv1.StringEncoding]model.StringEncoding{
	optionsv1.StringEncoding_STRING_ENCODING_UNSPECIFIED: model.UTF8,
	optionsv1.StringEncoding_UTF8:                        model.UTF8,
	optionsv1.StringEncoding_UTF16_BE:                    model.UTF16BE,
	optionsv1.StringEncoding_UTF16_LE:                    model.UTF16LE,
}

// text reads the deployment of a string.
func (r *interfaceReader) text(f protoreflect.FieldDescriptor, o *optionsv1.SomeipString, little bool) model.SOMEIPType {
	t := model.SOMEIPType{
		LengthWidth: 4, FixedLength: o.GetFixedLength(), Max: o.GetMaxLength(), Encoding: encodings[o.GetEncoding()],
		BOM: !o.GetNoBom(), Terminator: !o.GetNoTerminator(), LittleEndian: r.lengthOrder(little), DataID: -1,
	}
	if t.FixedLength > 0 {
		t.LengthWidth = 0
		if t.Max > 0 {
			r.add(r.memberAt(f, 3, 6), "fixed_length or max_length", "%s has both", f.Name())
		}
	}
	if o != nil && o.LengthWidth != nil {
		at := r.memberAt(f, 3, 1)
		t.LengthWidth = r.lengthWidth(at, o.GetLengthWidth(), true)
		if o.GetLengthWidth() == 0 && t.FixedLength == 0 {
			r.add(at, "1, 2 or 4, or 0 with a fixed_length", "the length of %s would be unknown", f.Name())
		}
	}
	r.checkTextSize(f, t)
	return t
}

// checkTextSize requires room for what every string has, and a length field that
// can hold the largest length.
func (r *interfaceReader) checkTextSize(f protoreflect.FieldDescriptor, t model.SOMEIPType) {
	unit, least := uint32(1), uint32(0)
	if t.BOM {
		least = 3
	}
	if t.Encoding != model.UTF8 {
		unit, least = 2, min(least, 2)
	}
	if t.Terminator {
		least += unit
	}
	for _, limit := range []struct {
		number int32
		name   string
		value  uint32
	}{{2, "fixed_length", t.FixedLength}, {6, "max_length", t.Max}} {
		at := r.memberAt(f, 3, limit.number)
		switch {
		case limit.value == 0:
		case limit.value < least:
			r.add(at, "at least the bytes of byte order mark and terminator", "%s %d of %s is less than the %d bytes of an empty string", limit.name, limit.value, f.Name(), least)
		case limit.value%unit != 0:
			r.add(at, "an even number", "%s %d of %s is not a length of UTF-16", limit.name, limit.value, f.Name())
		case t.LengthWidth > 0 && t.LengthWidth < 4 && uint64(limit.value) >= 1<<(8*t.LengthWidth):
			r.add(at, "a larger length_width", "%s %d of %s does not fit a length field of %d bytes", limit.name, limit.value, f.Name(), t.LengthWidth)
		}
	}
}

// checkMember reports attributes that do not go with the type.
func (r *interfaceReader) checkMember(f protoreflect.FieldDescriptor, o *optionsv1.SomeipMember, t *model.Type) {
	elem := t
	if t.Kind == model.ArrayKind {
		elem = t.Elem
	}
	number := widthOf(elem.Kind) > 0
	if o.GetWidth() != 0 && !number {
		allowed := "width on integers"
		if elem.Kind == model.EnumKind {
			allowed = "the option someip_enum of the enum"
		}
		r.add(r.memberAt(f, 1), allowed, "width does not apply to %s, a %s", f.Name(), typeWord(t))
	}
	if o.GetArray() != nil && t.Kind != model.ArrayKind && t.Kind != model.MapKind {
		r.add(r.memberAt(f, 2), "array on repeated fields and maps", "array does not apply to %s, a %s", f.Name(), typeWord(t))
	}
	if o.GetString_() != nil && elem.Kind != model.String {
		r.add(r.memberAt(f, 3), "string on strings", "string does not apply to %s, a %s", f.Name(), typeWord(t))
	}
	if o.GetBytesLengthWidth() != 0 && elem.Kind != model.Bytes {
		r.add(r.memberAt(f, 4), "bytes_length_width on bytes", "bytes_length_width does not apply to %s, a %s", f.Name(), typeWord(t))
	}
	if o.GetByteOrder() != 0 && elem.Kind == model.StructKind {
		r.add(r.memberAt(f, 5), "byte_order on the members of the struct", "byte_order does not apply to %s, a %s", f.Name(), typeWord(t))
	}
}
