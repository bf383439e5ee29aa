package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

// PAY-13, PAY-15, PAY-31.
func TestAppendRefuses(t *testing.T) {
	vents := structOf(member("vents", array(structOf(member("opening", u8)), 1)))
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		value  any
		err    string
	}{
		{"too large", vents, fields{"vents": list{fields{"opening": 1}, fields{"opening": 300}}}, "payload: vents[1].opening: out of range: 300, 0 to 255 allowed"},
		{"negative", u16, -1, "payload: out of range: -1, 0 to 65535 allowed"},
		{"too small", i8, -129, "payload: out of range: -129, -128 to 127 allowed"},
		{"too large for signed", i8, uint8(128), "payload: out of range: 128, -128 to 127 allowed"},
		{"too large for packed bits", structOf(member("a", with(u8, func(l *payload.Layout) { l.Bits = 3 }))), fields{"a": 8}, "payload: a: out of range: 8, 0 to 7 allowed"},
		{"too large a float", number(payload.Float, 4), 1e300, "payload: out of range: 1e+300, up to 3.4028235e+38 allowed"},
		{"wrong type", boolean, 1, "payload: unfit value: int for bool"},
		{"no value", u8, nil, "payload: unfit value: <nil> for uint"},
		{"missing member", vents, fields{}, "payload: vents: unfit value: missing"},
		{"unknown member", vents, fields{"vents": list{}, "x": 1}, "payload: x: unfit value: no such member"},
		{"not UTF-8", text(payload.PlainText, 1), "\xff", "payload: malformed: invalid text: not UTF-8"},
		{"NUL", text(payload.PlainText, 1), "a\x00", "payload: malformed: invalid text: inner NUL"},
		{"fixed string too long", with(text(payload.PlainText, 0), func(l *payload.Layout) { l.Size = 5 }), "ab", "payload: out of range: 6 bytes, up to 5 allowed"},
		{"string too long", with(text(payload.PlainText, 1), func(l *payload.Layout) { l.Max = 5 }), "ab", "payload: out of range: 6 bytes, up to 5 allowed"},
		{"too many elements", with(array(u8, 1), func(l *payload.Layout) { l.Max = 1 }), []byte{1, 2}, "payload: out of range: 2 elements, up to 1 allowed"},
		{"not as many as fixed", with(array(u8, 0), func(l *payload.Layout) { l.Count = 3 }), []byte{1, 2}, "payload: out of range: 2 elements, exactly 3 allowed"},
		{"beyond the length field", array(u8, 1), make([]byte, 256), "payload: out of range: 256 bytes, a length field of 1 bytes counts up to 255 at byte 0"},
		{"unknown alternative", union, payload.Alternative{Type: 3}, "payload: out of range: type 3, up to 2 allowed"},
		{"unfit alternative", union, payload.Alternative{Type: 1, Value: 256}, "payload: number: out of range: 256, 0 to 255 allowed"},
		{"unfit key", mapping, []payload.Entry{{Key: 1, Value: 1}, {Key: 256, Value: 1}}, "payload: [1].key: out of range: 256, 0 to 255 allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec, err := payload.Compile(c.layout, payload.Options{})
			require.NoError(t, err)
			dst, err := codec.Append([]byte{1}, c.value)
			require.EqualError(t, err, c.err)
			require.Equal(t, []byte{1}, dst)
		})
	}
}

func TestAppendTakesGoIntegers(t *testing.T) {
	codec, err := payload.Compile(u16, payload.Options{})
	require.NoError(t, err)
	for _, v := range []any{7, int8(7), int16(7), int32(7), int64(7), uint(7), uint8(7), uint16(7), uint32(7), uint64(7)} {
		b, err := codec.Append(nil, v)
		require.NoError(t, err)
		require.Equal(t, []byte{0, 7}, b)
	}
}

// TestShortestLength is the choice of wire types 5 to 7 by the size.
// PAY-28, PAY-29.
func TestShortestLength(t *testing.T) {
	layout := with(structOf(tagged("data", 1, &payload.Layout{Kind: payload.Bytes, LengthWidth: 4}), tagged("rows", 2, array(array(u8, 4), 4))),
		func(l *payload.Layout) { l.DynamicLength = true })
	codec, err := payload.Compile(layout, payload.Options{Strict: true})
	require.NoError(t, err)
	for n, head := range map[int]string{255: "5001 ff", 256: "6001 0100", 65535: "6001 ffff", 65536: "7001 00010000"} {
		want := fields{"data": make([]byte, n)}
		b, err := codec.Append(nil, want)
		require.NoError(t, err)
		require.Equal(t, bytesOf(t, head), b[:len(b)-n])
		got, err := codec.Decode(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	row := make(list, 200)
	for i := range row {
		row[i] = uint64(i)
	}
	want := fields{"rows": list{row, row}}
	b, err := codec.Append(nil, want)
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, "6002 0194 00c8 00"), b[:7], "the rows have length fields of 2 bytes too")
	got, err := codec.Decode(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
