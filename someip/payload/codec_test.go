package payload_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

type (
	fields = map[string]any
	list   = []any
)

func number(kind payload.Kind, width uint8) *payload.Layout {
	return &payload.Layout{Kind: kind, Width: width}
}

func text(t payload.Text, lengthWidth uint8) *payload.Layout {
	return &payload.Layout{Kind: payload.String, Text: t, LengthWidth: lengthWidth}
}

func array(elem *payload.Layout, lengthWidth uint8) *payload.Layout {
	return &payload.Layout{Kind: payload.Array, Elem: elem, LengthWidth: lengthWidth}
}

func structOf(members ...payload.Member) *payload.Layout {
	return &payload.Layout{Kind: payload.Struct, Members: members}
}

func member(name string, l *payload.Layout) payload.Member {
	return payload.Member{Name: name, Layout: l}
}

func tagged(name string, id uint16, l *payload.Layout) payload.Member {
	return payload.Member{Name: name, Layout: l, Tagged: true, DataID: id, Optional: true}
}

func with(l *payload.Layout, change func(*payload.Layout)) *payload.Layout {
	c := *l
	change(&c)
	return &c
}

func little(l *payload.Layout) *payload.Layout {
	return with(l, func(l *payload.Layout) { l.LittleEndian = true })
}

func bytesOf(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(tb, err)
	return b
}

var (
	u8, u16, u32, u64 = number(payload.Uint, 1), number(payload.Uint, 2), number(payload.Uint, 4), number(payload.Uint, 8)
	i8, i16           = number(payload.Int, 1), number(payload.Int, 2)
	boolean           = number(payload.Bool, 1)

	utf16be = payload.Text{Encoding: payload.UTF16BE, BOM: true, Terminator: true}
	utf16le = payload.Text{Encoding: payload.UTF16LE, BOM: true, Terminator: true}

	union = &payload.Layout{
		Kind: payload.Union, Width: 4, LengthWidth: 4,
		Members: []payload.Member{member("number", u8), member("name", text(payload.PlainText, 4))},
	}
	mapping = &payload.Layout{Kind: payload.Map, Key: u8, Elem: u8, LengthWidth: 4}
	tlv     = structOf(
		tagged("small", 1, u8), tagged("number", 2, u16), tagged("name", 3, text(payload.PlainText, 2)),
		tagged("inner", 4, with(structOf(member("x", u16)), func(l *payload.Layout) { l.LengthWidth = 4 })),
		tagged("rows", 5, array(array(u8, 4), 4)),
		tagged("choice", 6, union),
	)
	shortTLV = with(tlv, func(l *payload.Layout) { l.DynamicLength = true })
	packed   = structOf(
		member("on", with(boolean, func(l *payload.Layout) { l.Bits = 1 })),
		member("level", with(u8, func(l *payload.Layout) { l.Bits = 3 })),
		member("offset", with(i16, func(l *payload.Layout) { l.Bits = 9 })),
		member("after", u8),
	)
	aligned = structOf(member("first", u8), member("second", with(u32, func(l *payload.Layout) { l.Align = 4 })), member("third", text(payload.PlainText, 1)),
		member("fourth", with(u16, func(l *payload.Layout) { l.Align = 8 })))
)

// vectors are the examples of someip.md 5, and others by the same rules.
var vectors = []struct {
	name   string
	layout *payload.Layout
	bytes  string
	value  any
}{
	{"5.1 bool", boolean, "01", true},
	{"5.1 u8", u8, "ff", uint64(255)},
	{"5.1 i8", i8, "ff", int64(-1)},
	{"5.1 u16", u16, "0102", uint64(0x0102)},
	{"5.1 u16 little endian", little(u16), "0201", uint64(0x0102)},
	{"5.1 i16", i16, "8000", int64(-32768)},
	{"5.1 u32 little endian", little(u32), "04030201", uint64(0x01020304)},
	{"5.1 u64", u64, "ffffffffffffffff", uint64(math.MaxUint64)},
	{"5.1 u64 little endian", little(u64), "0800000000000000", uint64(8)},
	{"5.1 float32", number(payload.Float, 4), "419c0000", float32(19.5)},
	{"5.1 float64", number(payload.Float, 8), "4045400000000000", 42.5},
	{"5.1 float64 little endian", little(number(payload.Float, 8)), "0000000000404540", 42.5},
	{"5.1 enum, a value of no literal", number(payload.Enum, 1), "f7", uint64(0xf7)},
	{"5.1 enum of 8 bytes", number(payload.Enum, 8), "8000000000000001", uint64(1<<63 + 1)},
	{"5.1 signed enum", with(number(payload.Enum, 2), func(l *payload.Layout) { l.Signed = true }), "fffe", int64(-2)},
	{"5.1 packed bits", packed, "5d1f07", fields{"on": true, "level": uint64(6), "offset": int64(-11), "after": uint64(7)}},
	{"5.1 alignment", aligned, "01 000000 00000002 05 efbbbf6100 0000 0003", fields{"first": uint64(1), "second": uint64(2), "third": "a", "fourth": uint64(3)}},
	{"5.2 struct", structOf(member("a", u8), member("b", structOf(member("c", u16)))), "01 0002", fields{"a": uint64(1), "b": fields{"c": uint64(2)}}},
	{"5.2 struct with length", with(structOf(member("a", u8)), func(l *payload.Layout) { l.LengthWidth = 2 }), "0001 05", fields{"a": uint64(5)}},
	{"5.2 empty struct", structOf(), "", fields{}},
	{"5.3 UTF-8", text(payload.PlainText, 4), "00000007 efbbbf 616263 00", "abc"},
	{"5.3 empty UTF-8", text(payload.PlainText, 4), "00000004 efbbbf 00", ""},
	{"5.3 UTF-16BE", text(utf16be, 4), "0000000a feff 0061 0062 0063 0000", "abc"},
	{"5.3 UTF-16LE", little(text(utf16le, 4)), "0c000000 fffe 6100 34d81edd 6300 0000", "a𝄞c"},
	{"5.3 bare", text(payload.Text{}, 1), "02 c2b5", "µ"},
	{"5.3 fixed", with(text(payload.PlainText, 0), func(l *payload.Layout) { l.Size = 8 }), "efbbbf 6162 000000", "ab"},
	{"5.3 fixed with length", with(text(payload.PlainText, 1), func(l *payload.Layout) { l.Size = 8 }), "08 efbbbf 6162 000000", "ab"},
	{"5.3 fixed UTF-16", with(text(utf16be, 0), func(l *payload.Layout) { l.Size = 10 }), "feff 0061 0000 0000 0000", "a"},
	{"bytes", &payload.Layout{Kind: payload.Bytes, LengthWidth: 2}, "0003 010203", []byte{1, 2, 3}},
	{"fixed bytes", &payload.Layout{Kind: payload.Bytes, Size: 2}, "0102", []byte{1, 2}},
	{"5.4 dynamic", array(u16, 4), "00000004 0001 0002", list{uint64(1), uint64(2)}},
	{"5.4 empty", array(u16, 1), "00", list{}},
	{"5.4 two dimensions", array(array(u8, 4), 4), "0000000b 00000001 01 00000002 0203", list{list{uint64(1)}, list{uint64(2), uint64(3)}}},
	{"5.4 fixed", with(array(u16, 0), func(l *payload.Layout) { l.Count = 2 }), "0001 0002", list{uint64(1), uint64(2)}},
	{"5.4 fixed with length", with(array(u16, 4), func(l *payload.Layout) { l.Count = 2 }), "00000004 0001 0002", list{uint64(1), uint64(2)}},
	{"5.5 union", union, "00000001 00000001 05", payload.Alternative{Type: 1, Value: uint64(5)}},
	{"5.5 union, second", union, "00000008 00000002 00000004 efbbbf00", payload.Alternative{Type: 2, Value: ""}},
	{"5.5 empty union", union, "00000000 00000000", payload.Alternative{}},
	{"5.5 type first", with(union, func(l *payload.Layout) { l.TypeFirst, l.Width = true, 1 }), "01 00000001 05", payload.Alternative{Type: 1, Value: uint64(5)}},
	{"5.5 padded", with(union, func(l *payload.Layout) { l.LengthWidth, l.Max = 0, 12 }), "00000001 05 0000000000000000000000", payload.Alternative{Type: 1, Value: uint64(5)}},
	{"5.6 map", mapping, "00000002 01 02", []payload.Entry{{Key: uint64(1), Value: uint64(2)}}},
	{"5.7 u8", tlv, "0001 05", fields{"small": uint64(5)}},
	{"5.7 u16", tlv, "1002 0007", fields{"number": uint64(7)}},
	{"5.7 string", shortTLV, "5003 07 efbbbf 616263 00", fields{"name": "abc"}},
	{"5.7 configured length", tlv, "4003 0007 efbbbf 616263 00", fields{"name": "abc"}},
	{"5.7 struct", tlv, "4004 00000002 0009", fields{"inner": fields{"x": uint64(9)}}},
	{"5.7 union", tlv, "4006 00000001 00000001 05", fields{"choice": payload.Alternative{Type: 1, Value: uint64(5)}}},
	{"5.7 nested arrays", shortTLV, "5005 04 01 01 01 02", fields{"rows": list{list{uint64(1)}, list{uint64(2)}}}},
	{"5.7 nothing", tlv, "", fields{}},
}

// PAY-1, PAY-3 to PAY-8, PAY-10, PAY-13, PAY-16, PAY-17, PAY-20 to PAY-22, PAY-24, PAY-25, PAY-28, PAY-31.
func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			codec, err := payload.Compile(v.layout, payload.Options{Strict: true})
			require.NoError(t, err)
			b := bytesOf(t, v.bytes)

			value, err := codec.Decode(b)
			require.NoError(t, err)
			require.Equal(t, v.value, value)

			got, err := codec.Append([]byte{0xEE}, v.value)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(append([]byte{0xEE}, b...)), hex.EncodeToString(got))

			for n := range b {
				if v.layout == tlv || v.layout == shortTLV {
					continue // whose tail may be absent
				}
				_, err = codec.Decode(b[:n:n])
				require.ErrorIs(t, err, payload.ErrMalformed, "%d of %d bytes", n, len(b))
				var e *payload.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.Offset, n)
			}
		})
	}
}
