package transcode_test

import "carisma.dev/gateway/codegen/model"

// Models by hand, for what the .proto reader does not know or refuses.

func plain(kind model.Kind, proto model.ProtoType, width uint8) *model.Type {
	return &model.Type{Kind: kind, Proto: proto, SOMEIP: model.SOMEIPType{Width: width, DataID: -1}}
}

func uintOf(width uint8) *model.Type { return plain(model.Uint32, model.ProtoUint32, width) }

func stringOf(lengthWidth uint8) *model.Type {
	t := plain(model.String, model.ProtoString, 0)
	t.SOMEIP.LengthWidth, t.SOMEIP.BOM, t.SOMEIP.Terminator = lengthWidth, true, true
	return t
}

func messageOf(s *model.Struct) *model.Type {
	t := plain(model.StructKind, model.ProtoMessage, 0)
	t.Struct = s
	return t
}

func arrayOf(elem *model.Type, lengthWidth uint8) *model.Type {
	t := plain(model.ArrayKind, model.ProtoInvalid, 0)
	t.Elem, t.SOMEIP.LengthWidth = elem, lengthWidth
	return t
}

func unionOf(alternatives *model.Struct) *model.Type {
	t := plain(model.UnionKind, model.ProtoInvalid, 0)
	t.Struct, t.SOMEIP.LengthWidth = alternatives, 4
	return t
}

func enumOf(width uint8, values ...int64) *model.Type {
	t := plain(model.EnumKind, model.ProtoEnum, width)
	t.Enum = &model.Enum{Width: width}
	for _, v := range values {
		t.Enum.Literals = append(t.Enum.Literals, model.Literal{Value: v})
	}
	return t
}

func withType(t *model.Type, change func(*model.SOMEIPType)) *model.Type {
	c := *t
	change(&c.SOMEIP)
	return &c
}

func structOf(members ...*model.Member) *model.Struct {
	return &model.Struct{Name: "test.Message", Members: members}
}

func member(name string, number int32, t *model.Type) *model.Member {
	return &model.Member{Name: name, Number: number, Type: t}
}

func packed(m *model.Member) *model.Member { m.Packed = true; return m }

func optional(m *model.Member, id int32) *model.Member {
	m.Optional = true
	m.Type = withType(m.Type, func(t *model.SOMEIPType) { t.DataID = id })
	return m
}

var (
	point = &model.Struct{Name: "test.wide.v1.Point", SOMEIP: model.SOMEIPStruct{LengthWidth: 1}, Members: []*model.Member{
		member("x", 1, plain(model.Int32, model.ProtoInt32, 2)), member("y", 2, plain(model.Int32, model.ProtoInt32, 2)),
	}}
	// choice is test.wide.v1.Choice.
	choice = &model.Struct{Name: "test.wide.v1.Choice", Members: []*model.Member{
		member("before", 2, uintOf(1)),
		member("value", 0, unionOf(structOf(member("number", 3, uintOf(1)), member("name", 1, stringOf(4)), member("point", 5, messageOf(point))))),
		member("after", 4, uintOf(1)),
	}}
)
