package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip/payload"
)

func plain(kind model.Kind) *model.Type {
	return &model.Type{Kind: kind, SOMEIP: model.SOMEIPType{DataID: -1}}
}

func structOf(types ...*model.Type) *model.Struct {
	s := &model.Struct{Pos: model.Position{File: "climate.proto", Line: 7, Column: 1}, Name: "cabin.Vent"}
	for i, t := range types {
		s.Members = append(s.Members, &model.Member{Name: string(rune('a' + i)), Type: t})
	}
	return s
}

func lowered(t *testing.T, typ *model.Type) *payload.Layout {
	t.Helper()
	l, err := structOf(typ).SOMEIPLayout()
	require.NoError(t, err)
	require.Len(t, l.Members, 1)
	return l.Members[0].Layout
}

func TestLayoutOfNumbers(t *testing.T) {
	for kind, want := range map[model.Kind]payload.Layout{
		model.Bool:    {Kind: payload.Bool, Width: 1},
		model.Int8:    {Kind: payload.Int, Width: 1},
		model.Int16:   {Kind: payload.Int, Width: 2},
		model.Int32:   {Kind: payload.Int, Width: 4},
		model.Int64:   {Kind: payload.Int, Width: 8},
		model.Uint8:   {Kind: payload.Uint, Width: 1},
		model.Uint16:  {Kind: payload.Uint, Width: 2},
		model.Uint32:  {Kind: payload.Uint, Width: 4},
		model.Uint64:  {Kind: payload.Uint, Width: 8},
		model.Float32: {Kind: payload.Float, Width: 4},
		model.Float64: {Kind: payload.Float, Width: 8},
	} {
		require.Equal(t, &want, lowered(t, plain(kind)))
		typ := plain(kind)
		typ.SOMEIP.LittleEndian = true
		want.LittleEndian = true
		require.Equal(t, &want, lowered(t, typ))
	}
	narrow := plain(model.Uint32)
	narrow.SOMEIP.Width = 1
	require.Equal(t, &payload.Layout{Kind: payload.Uint, Width: 1}, lowered(t, narrow), "the deployment's width counts")
}

func TestLayoutOfEnums(t *testing.T) {
	typ := plain(model.EnumKind)
	typ.Enum = &model.Enum{Width: 2, Literals: []model.Literal{{Value: 0}}}
	require.Equal(t, &payload.Layout{Kind: payload.Enum, Width: 2}, lowered(t, typ))
	typ.Enum.Literals = append(typ.Enum.Literals, model.Literal{Value: -1})
	require.Equal(t, &payload.Layout{Kind: payload.Enum, Width: 2, Signed: true}, lowered(t, typ))
}

func TestLayoutOfComposites(t *testing.T) {
	text := plain(model.String)
	text.SOMEIP.LengthWidth, text.SOMEIP.Max, text.SOMEIP.Encoding, text.SOMEIP.BOM = 2, 64, model.UTF16LE, true
	require.Equal(t, &payload.Layout{Kind: payload.String, LengthWidth: 2, Max: 64, Text: payload.Text{Encoding: payload.UTF16LE, BOM: true}}, lowered(t, text))

	fixed := plain(model.Bytes)
	fixed.SOMEIP.FixedLength = 8
	require.Equal(t, &payload.Layout{Kind: payload.Bytes, Size: 8}, lowered(t, fixed))

	array := plain(model.ArrayKind)
	array.Elem = plain(model.Uint8)
	array.SOMEIP.Max = 3
	elem := &payload.Layout{Kind: payload.Uint, Width: 1}
	require.Equal(t, &payload.Layout{Kind: payload.Array, Count: 3, Max: 3, Elem: elem}, lowered(t, array), "without length field the maximum is the count")
	array.SOMEIP.LengthWidth = 1
	require.Equal(t, &payload.Layout{Kind: payload.Array, LengthWidth: 1, Max: 3, Elem: elem}, lowered(t, array))

	mapping := plain(model.MapKind)
	mapping.Key, mapping.Elem, mapping.SOMEIP.LengthWidth = plain(model.Uint8), plain(model.Bool), 4
	require.Equal(t, &payload.Layout{Kind: payload.Map, LengthWidth: 4, Key: elem, Elem: &payload.Layout{Kind: payload.Bool, Width: 1}}, lowered(t, mapping))

	union := plain(model.UnionKind)
	union.Struct, union.SOMEIP.LengthWidth = structOf(plain(model.Uint8)), 4
	require.Equal(t, &payload.Layout{Kind: payload.Union, Width: 4, LengthWidth: 4, Members: []payload.Member{{Name: "a", Layout: elem}}}, lowered(t, union))
}

func TestLayoutOfStructs(t *testing.T) {
	inner := structOf(plain(model.Uint8))
	inner.SOMEIP.LengthWidth = 2
	typ := plain(model.StructKind)
	typ.Struct = inner
	l, err := structOf(typ, typ).SOMEIPLayout()
	require.NoError(t, err)
	require.Equal(t, uint8(2), l.Members[0].Layout.LengthWidth)
	require.Same(t, l.Members[0].Layout, l.Members[1].Layout)

	l, err = inner.SOMEIPLayout()
	require.NoError(t, err)
	require.Zero(t, l.LengthWidth, "an argument list has no length field")

	node := structOf(plain(model.Uint8), plain(model.ArrayKind))
	node.Members[1].Type.Elem = plain(model.StructKind)
	node.Members[1].Type.Elem.Struct = node
	node.Members[1].Type.SOMEIP.LengthWidth = 4
	l, err = node.SOMEIPLayout()
	require.NoError(t, err)
	require.Same(t, l, l.Members[1].Layout.Elem, "a recursive type ends")
}

func TestLayoutOfOptionalMembers(t *testing.T) {
	number, inner := plain(model.Uint16), plain(model.StructKind)
	inner.Struct = structOf(plain(model.Uint8))
	number.SOMEIP.DataID, inner.SOMEIP.DataID = 1, 2
	s := structOf(number, inner)
	s.Members[0].Optional = true
	s.SOMEIP.DynamicLength = true
	l, err := s.SOMEIPLayout()
	require.NoError(t, err)
	require.True(t, l.DynamicLength)
	require.Equal(t, payload.Member{Name: "a", Layout: &payload.Layout{Kind: payload.Uint, Width: 2}, Tagged: true, DataID: 1, Optional: true}, l.Members[0])
	require.Equal(t, uint8(4), l.Members[1].Layout.LengthWidth, "the tag of a struct says that a length field follows")
	require.False(t, l.Members[1].Optional)
}

func TestLayoutErrors(t *testing.T) {
	typ := plain(model.StructKind)
	typ.Struct = structOf(plain(model.Uint8), plain(model.String))
	_, err := structOf(plain(model.Bool), typ).SOMEIPLayout()
	require.ErrorIs(t, err, payload.ErrLayout)
	require.EqualError(t, err, "climate.proto:7:1: cabin.Vent: payload: b.b: invalid layout: string without length field or size")
}
