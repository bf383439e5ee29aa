package payload_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/payload"
)

// FuzzDecode decodes with the layout of any vector: never a panic; what decodes
// encodes again, to bytes that decode to the same value, and the bytes of a
// vector to themselves.
// PAY-30, PAY-31.
func FuzzDecode(f *testing.F) {
	var codecs []*payload.Codec
	for i, v := range vectors {
		codec, err := payload.Compile(v.layout, payload.Options{})
		if err != nil {
			f.Fatal(err)
		}
		codecs = append(codecs, codec)
		b, err := hex.DecodeString(strings.ReplaceAll(v.bytes, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	for i, b := range append(corpus.Texts(f, "vectors/serde_someip"), corpus.Texts(f, "vectors/pysomeiptlv")...) {
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		codec := codecs[int(which)%len(codecs)]
		value, err := codec.Decode(b)
		if err != nil {
			return
		}
		once, err := codec.Append(nil, value)
		if err != nil {
			// A union of a type that the layout does not know has no value, and text
			// may take more room with mark and terminator than it came with.
			return
		}
		again, err := codec.Decode(once)
		if err != nil {
			t.Fatalf("%x, from %v, from %x: %v", once, value, b, err)
		}
		twice, err := codec.Append(nil, again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%x came back as %x, %v", once, twice, err)
		}
		if !reflect.DeepEqual(value, again) && !hasNaN(value) {
			t.Fatalf("%v came back as %v", value, again)
		}
	})
}

// hasNaN says that a value is a float that differs from itself.
func hasNaN(value any) bool { return !reflect.DeepEqual(value, value) }

// FuzzText decodes strings of every encoding: never a panic, and text that
// decodes comes back from its own encoding.
func FuzzText(f *testing.F) {
	for i, v := range vectors {
		b, err := hex.DecodeString(strings.ReplaceAll(v.bytes, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Add(uint8(1), []byte{0xFE, 0xFF, 0xD8, 0x34})
	f.Fuzz(func(t *testing.T, form uint8, raw []byte) {
		format := payload.Text{Encoding: payload.Encoding(form % 3), BOM: form&4 != 0, Terminator: form&8 != 0}
		for _, decode := range []func(dst, raw []byte) ([]byte, error){format.AppendText, format.AppendFixedText} {
			text, err := decode(nil, raw)
			if err != nil {
				continue
			}
			b, err := format.Append(nil, text)
			if errors.Is(err, payload.ErrText) && bytes.HasPrefix(text, []byte("\uFFFE")) {
				continue
			}
			if err != nil {
				t.Fatalf("%q from %x: %v", text, raw, err)
			}
			back, err := decode(nil, b)
			// A mark of its own that the format does not add is taken for one.
			if want := bytes.TrimPrefix(text, []byte("\ufeff")); err != nil || !bytes.Equal(back, text) && !bytes.Equal(back, want) {
				t.Fatalf("%q came back as %q, %v", text, back, err)
			}
		}
	})
}
