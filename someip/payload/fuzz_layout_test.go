package payload_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/payload"
)

// recipe makes layouts of bytes, and of zeros when they are used up.
type recipe struct {
	bytes []byte
	used  int
}

func (r *recipe) next() byte {
	if r.used == len(r.bytes) {
		return 0
	}
	r.used++
	return r.bytes[r.used-1]
}

// layout makes one of any kind, most of which can be compiled.
func (r *recipe) layout(depth int) *payload.Layout {
	kind, options, size := r.next(), r.next(), r.next()
	l := &payload.Layout{
		Kind:         payload.Bool + payload.Kind(kind)%payload.Union,
		Width:        1 << (options & 3),
		Signed:       options&4 != 0,
		LittleEndian: options&8 != 0,
		LengthWidth:  []uint8{4, 0, 1, 2}[options>>4&3],
	}
	if depth == 0 && !l.Kind.Scalar() {
		l.Kind = payload.Bytes
	}
	switch l.Kind {
	case payload.Bool:
		l.Width = 1
	case payload.Float:
		l.Width |= 4
		l.Width &= 12
	case payload.String, payload.Bytes:
		l.Size = uint32(size % 16)
		l.Text = payload.Text{Encoding: payload.Encoding(options >> 6 % 3), BOM: options&1 != 0, Terminator: options&2 != 0}
	case payload.Array:
		l.Count, l.Elem = uint32(size%5), r.layout(depth-1)
	case payload.Map:
		l.Max, l.Key, l.Elem = uint32(size%5), r.layout(0), r.layout(depth-1)
	case payload.Union:
		l.Width, l.Max, l.TypeFirst = min(l.Width, 4), uint32(size%32), options&0x40 != 0
		l.Members = r.members(size>>5, false, depth)
	case payload.Struct:
		l.DynamicLength = options&0x40 != 0
		l.Members = r.members(size%6, options&0x80 != 0, depth)
	default: // numbers
	}
	if size&0xC0 == 0x40 {
		l.Align = 1 << (size & 7 % 6)
	}
	return l
}

func (r *recipe) members(n byte, tagged bool, depth int) (all []payload.Member) {
	for i := range n {
		m := payload.Member{Name: string('a' + rune(i)), Layout: r.layout(depth - 1), Tagged: tagged, DataID: uint16(i) * 7}
		extra := r.next()
		m.Optional = tagged && extra&1 != 0
		if !tagged && extra&1 != 0 && m.Layout.Kind.Scalar() {
			m.Layout.Bits = extra >> 1 % (m.Layout.Width*8 + 1)
		}
		all = append(all, m)
	}
	return all
}

// FuzzLayout decodes with a layout of any kind, made of bytes: what decodes and can be
// encoded encodes the same from then on, whether read strictly or not.
// PAY-30, PAY-31.
func FuzzLayout(f *testing.F) {
	for kind := range byte(payload.Union) {
		for _, options := range []byte{0, 0x1B, 0x52, 0xC8, 0xE1} {
			f.Add([]byte{kind, options, 0x62, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, []byte{0, 0, 0, 4, 0xFF, 0xFE, 0, 0, 1, 2, 3, 4})
		}
	}
	for i, v := range vectors {
		b, err := hex.DecodeString(strings.ReplaceAll(v.bytes, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte{byte(i), byte(i * 5), byte(i * 11), byte(i * 3), byte(i * 7)}, b)
	}
	for i, b := range append(corpus.Texts(f, "vectors/serde_someip"), corpus.Texts(f, "vectors/pysomeiptlv")...) {
		f.Add([]byte{byte(i), byte(i * 5), byte(i * 11), byte(i * 3), byte(i * 7)}, b)
	}
	f.Fuzz(func(t *testing.T, form, b []byte) {
		layout := (&recipe{bytes: form}).layout(4)
		codec, err := payload.Compile(layout, payload.Options{})
		if err != nil {
			return
		}
		strict, err := payload.Compile(layout, payload.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		_, strictErr := strict.Decode(b)
		value, err := codec.Decode(b)
		if err != nil {
			if strictErr == nil {
				t.Fatalf("only strictly read is %x of %+v: %v", b, layout, err)
			}
			return
		}
		once, err := codec.Append(nil, value)
		if err != nil {
			return // as in FuzzDecode
		}
		again, err := codec.Decode(once)
		if err != nil {
			t.Fatalf("%x, from %v, from %x: %v", once, value, b, err)
		}
		twice, err := codec.Append(nil, again)
		// A mark of its own that the format does not add is taken for one, as in FuzzText.
		if err != nil || !bytes.Equal(once, twice) && !strings.Contains(fmt.Sprintf("%q", value), `\ufeff`) {
			t.Fatalf("%x came back as %x, %v", once, twice, err)
		}
	})
}
