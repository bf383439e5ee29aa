package transcode_test

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/bridge/transcode/internal/widev1"
	"carisma.dev/gateway/codegen/model"
)

// pair is a message in both formats, in hex.
type pair struct{ name, proto, someip string }

// check translates both ways.
func check(t *testing.T, s *model.Struct, pairs []pair) {
	t.Helper()
	codec := compile(t, s)
	for _, p := range pairs {
		got, err := codec.ToSOMEIP(nil, bytesOf(t, p.proto))
		require.NoError(t, err, p.name)
		require.Equal(t, hex.EncodeToString(bytesOf(t, p.someip)), hex.EncodeToString(got), p.name)
		got, err = codec.ToProto(nil, bytesOf(t, p.someip))
		require.NoError(t, err, p.name)
		require.Equal(t, hex.EncodeToString(bytesOf(t, p.proto)), hex.EncodeToString(got), p.name)
	}
}

func TestUnion(t *testing.T) { // someip.md 5.5
	check(t, choice, []pair{
		{"nothing", "", "00 00000000 00000000 00"},
		{"first; protobuf-go writes unions last", "1001 2002 1800", "01 00000001 00000001 00 02"},
		{"second", "1001 2002 0a0161", "01 00000009 00000002 00000005 efbbbf6100 02"},
		{"third", "2002 2a0408011002", "00 00000005 00000003 04 0001 0002 02"},
	})
	codec := compile(t, choice)
	for name, m := range map[string]*widev1.Choice{
		"number": {Before: 1, Value: &widev1.Choice_Number{Number: 7}, After: 2},
		"name":   {Before: 1, Value: &widev1.Choice_Name{Name: ""}, After: 2},
		"point":  {Before: 1, Value: &widev1.Choice_Point{Point: &widev1.Point{X: -1}}, After: 2},
		"unset":  {Before: 1, After: 2},
	} {
		someip, err := codec.ToSOMEIP(nil, marshal(t, m))
		require.NoError(t, err, name)
		back, err := codec.ToProto(nil, someip)
		require.NoError(t, err, name)
		require.Equal(t, hex.EncodeToString(marshal(t, m)), hex.EncodeToString(back), name)
	}

	// Of several alternatives the last counts; of the same message all parts.
	a := marshal(t, &widev1.Choice{Value: &widev1.Choice_Point{Point: &widev1.Point{X: 1}}})
	b := marshal(t, &widev1.Choice{Value: &widev1.Choice_Name{Name: "b"}})
	c := marshal(t, &widev1.Choice{Value: &widev1.Choice_Point{Point: &widev1.Point{Y: 2}}})
	for _, wire := range [][]byte{append(append(a, b...), c...), append(append(b, a...), c...)} {
		var m widev1.Choice
		require.NoError(t, proto.Unmarshal(wire, &m))
		want, err := codec.ToSOMEIP(nil, marshal(t, &m))
		require.NoError(t, err)
		got, err := codec.ToSOMEIP(nil, wire)
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))
	}

	got, err := codec.ToProto(nil, bytesOf(t, "01 00000002 00000009 aabb 02"))
	require.NoError(t, err, "an unknown type is skipped")
	require.Equal(t, bytesOf(t, "10012002"), got)

	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		m := newMessage(t, choice)
		fill(rnd, choice, m.ProtoReflect())
		checkMessage(t, rnd, codec, choice, m)
	}
}

func TestUnionForms(t *testing.T) {
	typeFirst := structOf(member("value", 0, withType(unionOf(structOf(member("number", 1, uintOf(1)))), func(t *model.SOMEIPType) { t.TypeFirst, t.Width = true, 1 })))
	check(t, typeFirst, []pair{{"type first", "0805", "01 00000001 05"}})
	padded := structOf(
		member("value", 0, withType(unionOf(structOf(member("small", 1, uintOf(1)), member("large", 2, uintOf(4)))), func(t *model.SOMEIPType) { t.LengthWidth, t.Max = 0, 4 })),
		member("after", 3, uintOf(1)))
	check(t, padded, []pair{{"small", "18070805", "00000001 05000000 07"}, {"large", "18071005", "00000002 00000005 07"}})
}

// taggedMessage has members of all kinds with data ids.
func taggedMessage() *model.Struct {
	return structOf(
		optional(member("number", 2, uintOf(2)), 2),
		optional(member("small", 1, uintOf(1)), 1),
		optional(member("name", 3, stringOf(2)), 3),
		optional(member("point", 4, messageOf(point)), 4),
		optional(packed(member("list", 5, arrayOf(uintOf(1), 4))), 5),
	)
}

func TestTagged(t *testing.T) { // someip.md 5.7
	s := taggedMessage()
	pairs := []pair{
		{"nothing", "", ""},
		{"u8", "0805", "0001 05"},
		{"u16", "1007", "1002 0007"},
		{"default values are there", "08001000", "1002 0000 0001 00"},
		{"in order of number", "08051007", "1002 0007 0001 05"},
		{"string", "1a03616263", "4003 0007 efbbbf 616263 00"},
		{"struct", "22020801", "4004 04 0001 0000"},
		{"array", "2a020102", "4005 00000002 0102"},
	}
	check(t, s, pairs)

	codec := compile(t, s)
	for _, p := range []pair{
		{"any order, unknown members, other lengths", "08051007 1a03616263", "57ff02aabb 17ff0001 0001 05 6003 0007 efbbbf 616263 00 47ff 0001 aa 1002 0007"},
		{"array with another length", "2a020102", "5005 02 0102"},
	} {
		got, err := codec.ToProto(nil, bytesOf(t, p.someip))
		require.NoError(t, err, p.name)
		require.Equal(t, hex.EncodeToString(bytesOf(t, p.proto)), hex.EncodeToString(got), p.name)
	}
	for _, p := range []pair{
		{"small: malformed message: data id 0x1 twice", "", "000105 000106"},
		{"small: malformed message: wire type 1 for a number of 1 bytes", "", "10010005"},
		{"name: malformed message: wire type 0 for a member with a length", "", "000305"},
		{"malformed message: truncated: 1 bytes left, at least 2 needed", "", "00"},
		{"malformed message: length 4294967295, 0 bytes left", "", "77ffffffffff"},
	} {
		_, err := codec.ToProto(nil, bytesOf(t, p.someip))
		require.EqualError(t, err, p.name)
	}

	s.SOMEIP.DynamicLength = true
	pairs[5].someip = "5003 07 efbbbf 616263 00"
	pairs[6].someip = "5004 04 0001 0000"
	pairs[7].someip = "5005 02 0102"
	check(t, s, pairs)

	required := structOf(member("a", 1, withType(uintOf(1), func(t *model.SOMEIPType) { t.DataID = 1 })))
	check(t, required, []pair{{"default", "", "000100"}})
	_, err := compile(t, required).ToProto(nil, nil)
	require.EqualError(t, err, "a: malformed message: missing")

	inner := structOf(member("inner", 1, messageOf(&model.Struct{Members: s.Members, SOMEIP: model.SOMEIPStruct{LengthWidth: 2}})), member("after", 2, uintOf(1)))
	check(t, inner, []pair{{"inner", "0a0208051007", "0003 000105 07"}})
}

// bitsMessage has packed members.
func bitsMessage() *model.Struct {
	bits := func(t *model.Type, n uint8) *model.Type {
		return withType(t, func(t *model.SOMEIPType) { t.Bits = n })
	}
	return structOf(
		member("on", 1, bits(plain(model.Bool, model.ProtoBool, 1), 1)),
		member("level", 2, bits(uintOf(1), 3)),
		member("offset", 3, bits(plain(model.Int32, model.ProtoSint32, 2), 9)),
		member("after", 4, uintOf(1)),
	)
}

func TestPackedBits(t *testing.T) {
	s := bitsMessage()
	check(t, s, []pair{{"run", "0801 1006 1815 2007", "5d1f07"}, {"zero", "", "000000"}})
	codec := compile(t, s)
	_, err := codec.ToSOMEIP(nil, bytesOf(t, "1008"))
	require.EqualError(t, err, "level: value out of range: 8, 0 to 7 allowed")
	_, err = codec.ToProto(nil, bytesOf(t, "5d"))
	require.EqualError(t, err, "on: malformed message: truncated: 1 bytes left, at least 2 needed")
}

// alignedMessage has padding between its members.
func alignedMessage() *model.Struct {
	return structOf(
		member("first", 1, uintOf(1)),
		member("second", 2, withType(uintOf(4), func(t *model.SOMEIPType) { t.Align = 4 })),
		member("third", 3, stringOf(1)),
		packed(member("fourth", 4, arrayOf(withType(uintOf(2), func(t *model.SOMEIPType) { t.Align = 8 }), 1))),
	)
}

func TestAlignment(t *testing.T) {
	s := alignedMessage()
	check(t, s, []pair{{"", "0801 1002 1a0161 22020304", "01 000000 00000002 05 efbbbf6100 0b 00 0003 000000000000 0004"}})
}

func TestEnums(t *testing.T) {
	s := structOf(member("e", 1, enumOf(1, 0, 1, 7)), packed(member("list", 2, arrayOf(enumOf(2, 0, 1), 1))))
	check(t, s, []pair{{"", "0807 12020001", "07 04 0000 0001"}})
	got, err := compile(t, s).ToProto(nil, bytesOf(t, "f7 02 0100"))
	require.NoError(t, err, "values of no literal survive")
	require.Equal(t, bytesOf(t, "08f701 12028002"), got)

	check(t, structOf(member("e", 1, enumOf(1))), []pair{{"without literals any value", "08f701", "f7"}})
	signed := structOf(member("e", 1, enumOf(2, -2, 0)))
	check(t, signed, []pair{{"", "08feffffffffffffffff01", "fffe"}})
	wide := structOf(member("e", 1, enumOf(4, 0, 1)))
	got, err = compile(t, wide).ToProto(nil, bytesOf(t, "fffffff0"))
	require.NoError(t, err, "32 bits survive")
	require.Equal(t, bytesOf(t, "08f0ffffffffffffffff01"), got)
	widest := structOf(member("e", 1, enumOf(8, 0, 1)))
	_, err = compile(t, widest).ToProto(nil, bytesOf(t, "00000001 00000000"))
	require.EqualError(t, err, "e: value out of range: 4294967296, 0 to 2147483647 allowed")
	require.ErrorIs(t, err, transcode.ErrRange)
}

func TestFloatsOfOtherSize(t *testing.T) {
	s := structOf(member("a", 1, plain(model.Float64, model.ProtoDouble, 4)), member("b", 2, plain(model.Float32, model.ProtoFloat, 8)))
	check(t, s, []pair{{"", "09000000000000f83f 150000c03f", "3fc00000 3ff8000000000000"}})
	codec := compile(t, s)
	_, err := codec.ToSOMEIP(nil, bytesOf(t, "090000000000000047"))
	require.NoError(t, err)
	_, err = codec.ToSOMEIP(nil, bytesOf(t, "09ffffffffffffef7f"))
	require.EqualError(t, err, "a: value out of range: 1.7976931348623157e+308, up to 3.4028235e+38 allowed")
}

func TestRecursion(t *testing.T) {
	node := structOf(member("value", 1, uintOf(1)))
	node.Members = append(node.Members, member("children", 2, arrayOf(messageOf(node), 4)))
	check(t, node, []pair{{"", "0801 12020802 1206 0803 1202 0804", "01 0000000f 02 00000000 03 00000005 04 00000000"}})

	deep, wire := []byte{1, 0, 0, 0, 0}, []byte{0x08, 1}
	for range 40 {
		deep = append([]byte{1, 0, 0, byte(len(deep) >> 8), byte(len(deep))}, deep...)
		wire = append([]byte{0x12, byte(len(wire))}, wire...)
		if len(wire) > 100 {
			break
		}
	}
	_, err := compile(t, node).ToProto(nil, deep)
	require.ErrorIs(t, err, transcode.ErrMalformed)
	require.ErrorContains(t, err, "nested deeper than 32")
	_, err = compile(t, node).ToSOMEIP(nil, wire)
	require.ErrorContains(t, err, "nested deeper than 32")
}

func TestFixedArrays(t *testing.T) {
	s := structOf(packed(member("three", 1, withType(arrayOf(uintOf(2), 0), func(t *model.SOMEIPType) { t.Count = 3 }))), member("after", 2, uintOf(1)))
	codec := compile(t, s)
	check(t, s, []pair{{"", "0a03010203 1007", "0001 0002 0003 07"}})
	got, err := codec.ToSOMEIP(nil, bytesOf(t, "1007"))
	require.NoError(t, err, "absent: default elements")
	require.Equal(t, bytesOf(t, "0000 0000 0000 07"), got)
	_, err = codec.ToSOMEIP(nil, bytesOf(t, "0a020102"))
	require.EqualError(t, err, "three: value out of range: 2 elements, exactly 3 allowed")
	_, err = codec.ToSOMEIP(nil, bytesOf(t, "0a0401020304"))
	require.EqualError(t, err, "three: value out of range: 4 elements, exactly 3 allowed")

	grown := structOf(packed(member("two", 1, withType(arrayOf(uintOf(1), 1), func(t *model.SOMEIPType) { t.Count = 2 }))), member("after", 2, uintOf(1)))
	got, err = compile(t, grown).ToProto(nil, bytesOf(t, "03 010203 07"))
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, "0a020102 1007"), got)
}
