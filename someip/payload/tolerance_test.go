package payload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

// TestTolerance has payloads that no strict reader accepts, and what a tolerant
// one makes of them.
// PAY-4, PAY-9, PAY-12, PAY-14, PAY-26.
func TestTolerance(t *testing.T) {
	withLength := with(structOf(member("a", u8)), func(l *payload.Layout) { l.LengthWidth = 1 })
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		bytes  string
		value  any
	}{
		{"HDR-6 bytes behind the end", u8, "05 a5a5", uint64(5)},
		{"5.1 receivers look only at bit 0", boolean, "fe", false},
		{"5.2 surplus in a struct", structOf(member("s", withLength), member("b", u8)), "03 05 a5a5 07", fields{"s": fields{"a": uint64(5)}, "b": uint64(7)}},
		{"5.3 no byte order mark", text(payload.PlainText, 1), "02 61 00", "a"},
		{"5.3 no terminator", text(payload.PlainText, 1), "04 efbbbf 61", "a"},
		{"5.3 nothing at all", text(payload.PlainText, 1), "00", ""},
		{"5.3 a mark that is not configured", text(payload.Text{}, 1), "05 efbbbf 61 00", "a"},
		{"5.3 an odd last byte of UTF-16", text(utf16be, 1), "07 feff 0061 0000 61", "a"},
		{
			"5.4 a fixed array that has grown", structOf(member("a", with(array(u8, 1), func(l *payload.Layout) { l.Count = 2 })), member("b", u8)), "03 010203 07",
			fields{"a": list{uint64(1), uint64(2)}, "b": uint64(7)},
		},
		{"5.7 an unknown data id", tlv, "57ff 02 aabb 0001 05", fields{"small": uint64(5)}},
		{"5.7 an unknown id of each wire type", tlv, "07ff 01 17ff 0102 27ff 01020304 37ff 0102030405060708 47ff 0001 aa 57ff 01 aa 67ff 0001 aa 77ff 00000001 aa 0001 05", fields{"small": uint64(5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tolerant, err := payload.Compile(c.layout, payload.Options{})
			require.NoError(t, err)
			value, err := tolerant.Decode(bytesOf(t, c.bytes))
			require.NoError(t, err)
			require.Equal(t, c.value, value)

			strict, err := payload.Compile(c.layout, payload.Options{Strict: true})
			require.NoError(t, err)
			value, err = strict.Decode(bytesOf(t, c.bytes))
			if strings.HasPrefix(c.name, "5.4") {
				require.ErrorIs(t, err, payload.ErrMalformed)
				return
			}
			require.ErrorIs(t, err, payload.ErrMalformed, "%v", value)
		})
	}
}

// TestAcceptedForms are other forms of a payload that every reader accepts.
// PAY-11, PAY-15, PAY-20, PAY-23, PAY-24, PAY-26, PAY-29.
func TestAcceptedForms(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		bytes  string
		value  any
	}{
		{"5.3 the mark wins over the configured order", text(utf16be, 1), "06 fffe 6100 0000", "a"},
		{"5.3 fixed strings end at the first NUL", with(text(payload.PlainText, 0), func(l *payload.Layout) { l.Size = 8 }), "efbbbf 61 00 62 63 00", "a"},
		{"5.5 an unknown type", structOf(member("u", union), member("b", u8)), "00000002 00000009 aabb 07", fields{"u": payload.Alternative{Type: 9}, "b": uint64(7)}},
		{"5.5 padding behind the element", structOf(member("u", union), member("b", u8)), "00000003 00000001 05 0000 07", fields{"u": payload.Alternative{Type: 1, Value: uint64(5)}, "b": uint64(7)}},
		{"5.6 of a key the last", mapping, "00000006 0102 0304 0105", []payload.Entry{{Key: uint64(3), Value: uint64(4)}, {Key: uint64(1), Value: uint64(5)}}},
		{"5.7 any order", tlv, "1002 0007 0001 05", fields{"small": uint64(5), "number": uint64(7)}},
		{"5.7 a length of 2 bytes", tlv, "6003 0007 efbbbf 616263 00", fields{"name": "abc"}},
		{"5.7 a length of 4 bytes", tlv, "7003 00000007 efbbbf 616263 00", fields{"name": "abc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			strict, err := payload.Compile(c.layout, payload.Options{Strict: true})
			require.NoError(t, err)
			value, err := strict.Decode(bytesOf(t, c.bytes))
			require.NoError(t, err)
			require.Equal(t, c.value, value)
		})
	}
}

// TestMalformed are payloads that no reader accepts.
// PAY-15, PAY-18, PAY-27, PAY-31.
func TestMalformed(t *testing.T) {
	vent := with(structOf(member("position", u8), member("opening", u16)), func(l *payload.Layout) { l.LengthWidth = 1 })
	vents := structOf(member("vents", array(vent, 4)))
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		bytes  string
		err    string
	}{
		{"short element", vents, "00000006 03 010002 01 01", "payload: vents[1].opening: malformed: truncated: 0 of 2 bytes at byte 10"},
		{"length beyond the payload", vents, "ffffffff 03 010002", "payload: vents: malformed: truncated: length 4294967295, 4 bytes left at byte 0"},
		{"length beyond the array", vents, "00000004 04 010002 00", "payload: vents[0]: malformed: truncated: length 4, 3 bytes left at byte 4"},
		{"no multiple of the element size", structOf(member("a", array(u16, 1))), "03 010203", "payload: a[1]: malformed: truncated: 1 of 2 bytes at byte 3"},
		{"not UTF-8", structOf(member("s", text(payload.PlainText, 1))), "05 efbbbf ff 00", "payload: s: malformed: invalid text: not UTF-8 at byte 4"},
		{"inner NUL", structOf(member("s", text(payload.PlainText, 1))), "07 efbbbf 61 00 62 00", "payload: s: malformed: invalid text: inner NUL at byte 5"},
		{"inner NUL of UTF-16", structOf(member("s", text(utf16be, 1))), "08 feff 0000 0061 0000", "payload: s: malformed: invalid text: inner NUL at byte 3"},
		{"two terminators", structOf(member("s", text(payload.PlainText, 1))), "05 efbbbf 00 00", "payload: s: malformed: invalid text: inner NUL at byte 4"},
		{"lone surrogate", structOf(member("s", text(utf16be, 1))), "06 feff d834 0000", "payload: s: malformed: invalid text: lone surrogate at byte 3"},
		{"union longer than the payload", union, "00000005 00000001 05", "payload: malformed: truncated: 1 of 5 bytes at byte 8"},
		{"union shorter than its element", union, "00000000 00000001", "payload: number: malformed: truncated: 0 of 1 bytes at byte 8"},
		{"too many elements", with(array(u8, 1), func(l *payload.Layout) { l.Max = 2 }), "03 010203", "payload: out of range: more than 2 elements at byte 3"},
		{"too long a string", with(text(payload.PlainText, 1), func(l *payload.Layout) { l.Max = 4 }), "05 efbbbf 61 00", "payload: out of range: 5 bytes, up to 4 allowed at byte 1"},
		{"data id twice", tlv, "0001 05 0001 05", "payload: small: malformed: data id 0x1 twice at byte 3"},
		{"wrong wire type", tlv, "1001 0005", "payload: small: malformed: wire type 1 at byte 0"},
		{"unknown member beyond the payload", tlv, "77ff ffffffff", "payload: malformed: truncated: length 4294967295, 0 bytes left at byte 2"},
		{"half a tag", tlv, "00", "payload: malformed: truncated: 1 of 2 bytes at byte 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec, err := payload.Compile(c.layout, payload.Options{})
			require.NoError(t, err)
			_, err = codec.Decode(bytesOf(t, c.bytes))
			require.EqualError(t, err, c.err)
		})
	}
}

// TestHostileLengths checks that no length sizes an allocation and that nesting
// ends (someip.md 5.9).
// PAY-30.
func TestHostileLengths(t *testing.T) {
	node := structOf(member("value", u8), payload.Member{Name: "children"})
	node.Members[1].Layout = array(node, 4)
	codec, err := payload.Compile(node, payload.Options{})
	require.NoError(t, err)
	var deep []byte
	for n := 40; n > 0; n-- {
		deep = append(deep, 1, 0, 0, byte((n-1)*5>>8), byte((n-1)*5))
	}
	_, err = codec.Decode(deep)
	require.ErrorIs(t, err, payload.ErrDepth)

	for _, v := range vectors {
		huge, err := payload.Compile(array(v.layout, 4), payload.Options{})
		if err != nil {
			continue // elements that may take no bytes
		}
		b := append(bytesOf(t, "7fffffff"), bytesOf(t, v.bytes)...)
		require.Less(t, testing.AllocsPerRun(5, func() { _, err = huge.Decode(b) }), 20.0, v.name)
		require.ErrorIs(t, err, payload.ErrMalformed)
	}

	limited, err := payload.Compile(array(array(u8, 1), 1), payload.Options{MaxElements: 4})
	require.NoError(t, err)
	_, err = limited.Decode(bytesOf(t, "04 01 01 01 01"))
	require.NoError(t, err)
	_, err = limited.Decode(bytesOf(t, "06 01 01 01 01 01 01"))
	require.ErrorIs(t, err, payload.ErrRange)
}
