package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

func TestValidate(t *testing.T) {
	self := structOf(member("a", u8), payload.Member{Name: "self"})
	self.Members[1].Layout = self
	nested := u8
	for range payload.MaxDepth + 1 {
		nested = structOf(member("x", nested))
	}
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		err    string
	}{
		{"nothing", &payload.Layout{}, "payload: invalid layout: kind invalid"},
		{"unknown kind", &payload.Layout{Kind: 99}, "payload: invalid layout: kind invalid"},
		{"no element", array(nil, 4), "payload: []: invalid layout: no layout"},
		{"width", number(payload.Uint, 3), "payload: invalid layout: uint of 3 bytes"},
		{"bool", number(payload.Bool, 2), "payload: invalid layout: bool of 2 bytes"},
		{"float", number(payload.Float, 2), "payload: invalid layout: float of 2 bytes"},
		{"length field", array(u8, 3), "payload: invalid layout: length field of 3 bytes"},
		{"no length", text(payload.PlainText, 0), "payload: invalid layout: string without length field or size"},
		{"no room", with(text(payload.PlainText, 0), func(l *payload.Layout) { l.Size = 3 }), "payload: invalid layout: size of 3 bytes, byte order mark and terminator take 4"},
		{"no count", array(u8, 0), "payload: invalid layout: array without length field or count"},
		{"elements of no size", structOf(member("a", array(structOf(), 4))), "payload: a[]: invalid layout: elements may take no bytes"},
		{"map without length", with(mapping, func(l *payload.Layout) { l.LengthWidth = 0 }), "payload: invalid layout: map without length field"},
		{"key", with(mapping, func(l *payload.Layout) { l.Key = structOf(member("a", u8)) }), "payload: invalid layout: struct as key"},
		{"type field", with(union, func(l *payload.Layout) { l.Width = 8 }), "payload: invalid layout: type field of 8 bytes"},
		{"union of no size", with(union, func(l *payload.Layout) { l.LengthWidth = 0 }), "payload: invalid layout: union without length field needs the size of its largest alternative"},
		{"untagged among tagged", structOf(tagged("a", 1, u8), member("b", u8)), "payload: b: invalid layout: all members need a data id or none"},
		{"data id twice", structOf(tagged("a", 1, u8), tagged("b", 1, u8)), "payload: b: invalid layout: data id 0x1 is that of another member too"},
		{"data id too large", structOf(tagged("a", 0x1000, u8)), "payload: a: invalid layout: data id 0x1000, up to 0xfff allowed"},
		{"optional without data id", structOf(payload.Member{Name: "a", Layout: u8, Optional: true}), "payload: a: invalid layout: an optional member needs a data id"},
		{"tagged without end", structOf(member("a", tlv)), "payload: a: invalid layout: optional members need a length field around them"},
		{"tagged without length", structOf(tagged("a", 1, structOf(member("b", u8)))), "payload: a: invalid layout: optional member without length field"},
		{"itself", self, "payload: self: invalid layout: contains itself"},
		{"too deep", nested, "payload: invalid layout: nested deeper than 32"},
		{"alignment", with(u8, func(l *payload.Layout) { l.Align = 3 }), "payload: invalid layout: alignment of 3 bytes"},
		{"bits", with(u8, func(l *payload.Layout) { l.Bits = 9 }), "payload: invalid layout: 9 bits in 1 bytes"},
		{"bits of elements", array(with(u8, func(l *payload.Layout) { l.Bits = 3 }), 4), "payload: []: invalid layout: packed bits outside a struct"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := payload.Compile(c.layout, payload.Options{})
			require.ErrorIs(t, err, payload.ErrLayout)
			require.EqualError(t, err, c.err)
		})
	}
}
