package proto

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

const memberExtension = 53404

// memberAt is the place of an attribute of someip_member.
func (r *interfaceReader) memberAt(f protoreflect.FieldDescriptor, below ...int32) model.Position {
	return r.files.pos(f, append([]int32{optionsOfField, memberExtension}, below...)...)
}

// scalars says how protobuf carries a kind, and the widest SOME/IP kind for it.
var scalars = map[protoreflect.Kind]struct {
	proto model.ProtoType
	kind  model.Kind
	size  uint32 // of an integer
}{
	protoreflect.BoolKind:     {model.ProtoBool, model.Bool, 0},
	protoreflect.Int32Kind:    {model.ProtoInt32, model.Int32, 4},
	protoreflect.Sint32Kind:   {model.ProtoSint32, model.Int32, 4},
	protoreflect.Sfixed32Kind: {model.ProtoSfixed32, model.Int32, 4},
	protoreflect.Uint32Kind:   {model.ProtoUint32, model.Uint32, 4},
	protoreflect.Fixed32Kind:  {model.ProtoFixed32, model.Uint32, 4},
	protoreflect.Int64Kind:    {model.ProtoInt64, model.Int64, 8},
	protoreflect.Sint64Kind:   {model.ProtoSint64, model.Int64, 8},
	protoreflect.Sfixed64Kind: {model.ProtoSfixed64, model.Int64, 8},
	protoreflect.Uint64Kind:   {model.ProtoUint64, model.Uint64, 8},
	protoreflect.Fixed64Kind:  {model.ProtoFixed64, model.Uint64, 8},
	protoreflect.FloatKind:    {model.ProtoFloat, model.Float32, 0},
	protoreflect.DoubleKind:   {model.ProtoDouble, model.Float64, 0},
	protoreflect.StringKind:   {model.ProtoString, model.String, 0},
	protoreflect.BytesKind:    {model.ProtoBytes, model.Bytes, 0},
	protoreflect.EnumKind:     {model.ProtoEnum, model.EnumKind, 0},
	protoreflect.MessageKind:  {model.ProtoMessage, model.StructKind, 0},
}

// signedKinds and unsignedKinds are the integer kinds by width.
var (
	signedKinds   = map[uint32]model.Kind{1: model.Int8, 2: model.Int16, 4: model.Int32, 8: model.Int64}
	unsignedKinds = map[uint32]model.Kind{1: model.Uint8, 2: model.Uint16, 4: model.Uint32, 8: model.Uint64}
)

// typeOf reads the type of a field, o its deployment, which may be nil.
func (r *interfaceReader) typeOf(f protoreflect.FieldDescriptor, o *optionsv1.SomeipMember) *model.Type {
	little := r.bigOrLittle(o.GetByteOrder())
	var t *model.Type
	switch {
	case f.IsMap():
		t = &model.Type{
			Kind: model.MapKind, Proto: model.ProtoMessage,
			Key: r.elemOf(f.MapKey(), nil, little), Elem: r.elemOf(f.MapValue(), nil, little),
			SOMEIP: r.array(f, o.GetArray(), little),
		}
	case f.IsList():
		t = &model.Type{Kind: model.ArrayKind, Elem: r.elemOf(f, o, little), SOMEIP: r.array(f, o.GetArray(), little)}
	default:
		t = r.elemOf(f, o, little)
	}
	r.checkMember(f, o, t)
	return t
}

// elemOf reads the type of a field without regard to repetition.
func (r *interfaceReader) elemOf(f protoreflect.FieldDescriptor, o *optionsv1.SomeipMember, little bool) *model.Type {
	s, ok := scalars[f.Kind()]
	if !ok {
		r.add(r.files.pos(f), "a message", "%s is a group, which is not supported", f.Name())
		return &model.Type{SOMEIP: model.SOMEIPType{DataID: -1}}
	}
	t := &model.Type{Kind: s.kind, Proto: s.proto, SOMEIP: model.SOMEIPType{DataID: -1}}
	switch s.kind { //nolint:exhaustive // the other kinds have no attributes, or are not in the table
	case model.String:
		t.SOMEIP = r.text(f, o.GetString_(), little)
	case model.Bytes:
		t.SOMEIP.LengthWidth = 4
		if w := o.GetBytesLengthWidth(); w != 0 {
			t.SOMEIP.LengthWidth = r.lengthWidth(r.memberAt(f, 4), w, false)
		}
		t.SOMEIP.LittleEndian = r.lengthOrder(little)
	case model.EnumKind:
		t.Enum = r.enumOf(f.Enum())
		t.SOMEIP.Width, t.SOMEIP.LittleEndian = t.Enum.Width, little
	case model.StructKind:
		t.Struct = r.structOf(f.Message(), f)
		t.SOMEIP.LengthWidth, t.SOMEIP.LittleEndian = t.Struct.SOMEIP.LengthWidth, r.lengthOrder(little)
	case model.Float32, model.Float64:
		t.SOMEIP.LittleEndian = little
	case model.Int32, model.Int64, model.Uint32, model.Uint64:
		t.Kind = r.integer(f, o.GetWidth(), s.kind, s.size)
		t.SOMEIP.Width, t.SOMEIP.LittleEndian = widthOf(t.Kind), little
	}
	return t
}

// integer narrows an integer kind to a width.
func (r *interfaceReader) integer(f protoreflect.FieldDescriptor, width uint32, widest model.Kind, size uint32) model.Kind {
	switch {
	case width == 0:
		return widest
	case !isWidth(width):
		r.add(r.memberAt(f, 1), "1, 2, 4 or 8", "an integer has no width of %d bytes", width)
		return widest
	case width > size:
		r.add(r.memberAt(f, 1), "1, 2 or 4, or a 64-bit type", "width %d is more than the %d bytes of %s", width, size, f.Kind())
		return widest
	case widest == model.Int32 || widest == model.Int64:
		return signedKinds[width]
	}
	return unsignedKinds[width]
}

func widthOf(k model.Kind) uint8 {
	for w, kind := range signedKinds {
		if k == kind || k == unsignedKinds[w] {
			return uint8(w)
		}
	}
	return 0
}

// bigOrLittle says whether values are little endian, by the member or else by
// the interface.
func (r *interfaceReader) bigOrLittle(o optionsv1.ByteOrder) bool {
	if o == optionsv1.ByteOrder_BYTE_ORDER_UNSPECIFIED {
		o = r.options.GetByteOrder()
	}
	return o == optionsv1.ByteOrder_LITTLE_ENDIAN
}

// lengthOrder says whether length fields beside values of this order are little
// endian.
func (r *interfaceReader) lengthOrder(little bool) bool {
	return little && r.options.GetLengthFieldsInPayloadOrder()
}
