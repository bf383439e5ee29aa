package payload_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/payload"
)

// readVectors reads a file of vectors from the corpus.
func readVectors(t *testing.T, name string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/"+name), into))
}

// numbers are the layouts of the vectors' scalar types.
var numbers = map[string]*payload.Layout{
	"bool": boolean, "boolean": boolean,
	"uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64,
	"sint8": i8, "sint16": i16, "sint32": number(payload.Int, 4), "sint64": number(payload.Int, 8),
	"float32": number(payload.Float, 4), "float64": number(payload.Float, 8),
}

// fromJSON turns a JSON number into what the layout takes.
func fromJSON(t *testing.T, l *payload.Layout, n any) any {
	t.Helper()
	number, ok := n.(json.Number)
	if !ok {
		largest := float64(math.MaxFloat32)
		if l.Width == 8 {
			largest = math.MaxFloat64
		}
		return map[any]float64{"+inf": math.Inf(1), "-inf": math.Inf(-1), "max": largest, "min": -largest}[n]
	}
	if l.Kind == payload.Float {
		f, err := number.Float64()
		require.NoError(t, err)
		return f
	}
	if i, err := number.Int64(); err == nil {
		return i
	}
	var u uint64
	require.NoError(t, json.Unmarshal([]byte(number), &u))
	return u
}

// bothWays checks that a value has these bytes and these bytes that value.
func bothWays(t *testing.T, l *payload.Layout, value any, want string) {
	t.Helper()
	codec, err := payload.Compile(l, payload.Options{Strict: true})
	require.NoError(t, err)
	b, err := codec.Append(nil, value)
	require.NoError(t, err)
	require.Equal(t, want, hex.EncodeToString(b))
	decoded, err := codec.Decode(b)
	require.NoError(t, err)
	again, err := codec.Append(nil, decoded)
	require.NoError(t, err)
	require.Equal(t, want, hex.EncodeToString(again))
}

// decodeNumbers decodes JSON values without loss.
type decodeNumbers struct{ any }

func (d *decodeNumbers) UnmarshalJSON(b []byte) error {
	var n json.Number
	if json.Unmarshal(b, &n) == nil && len(b) > 0 && b[0] != '"' {
		d.any = n
		return nil
	}
	return json.Unmarshal(b, &d.any)
}

// TestSerdeVectors are those of the serde_someip library.
// PAY-1, PAY-5, PAY-6, PAY-10, PAY-14, PAY-16, PAY-25, PAY-29.
func TestSerdeVectors(t *testing.T) {
	var file struct {
		Primitives []struct {
			Type   string
			Value  decodeNumbers
			BE, LE string
		}
		EnumSint16 []struct {
			Value int
			BE    string
		} `json:"enum_sint16"`
		Sequences []struct {
			Elements    string
			LengthWidth uint8 `json:"length_field_bytes"`
			Static      uint32
			Value       []decodeNumbers
			Bytes       string
		}
		Strings []struct {
			Text, Encoding  string
			BOM, Terminator bool
			LengthWidth     uint8 `json:"length_field_bytes"`
			Static          uint32
			Bytes           string
		}
		TLV    []struct{ Name, Bytes string }
		Struct []struct {
			Bytes       string
			LengthWidth uint8 `json:"struct_length_field_bytes"`
		}
	}
	readVectors(t, "serde_someip/someip-serialization.json", &file)
	for _, v := range file.Primitives {
		l := numbers[v.Type]
		require.NotNil(t, l, v.Type)
		bothWays(t, l, fromJSON(t, l, v.Value.any), v.BE)
		bothWays(t, little(l), fromJSON(t, l, v.Value.any), v.LE)
	}
	for _, v := range file.EnumSint16 {
		bothWays(t, with(number(payload.Enum, 2), func(l *payload.Layout) { l.Signed = true }), v.Value, v.BE)
	}
	for _, v := range file.Sequences {
		elem := numbers[v.Elements]
		var values list
		for _, n := range v.Value {
			values = append(values, fromJSON(t, elem, n.any))
		}
		bothWays(t, with(array(elem, v.LengthWidth), func(l *payload.Layout) { l.Count = v.Static }), values, v.Bytes)
	}
	encodings := map[string]payload.Encoding{"utf-8": payload.UTF8, "utf-16be": payload.UTF16BE, "utf-16le": payload.UTF16LE}
	for _, v := range file.Strings {
		format := payload.Text{Encoding: encodings[v.Encoding], BOM: v.BOM, Terminator: v.Terminator}
		bothWays(t, with(text(format, v.LengthWidth), func(l *payload.Layout) { l.Size = v.Static }), v.Text, v.Bytes)
	}

	plain := structOf(member("first", i16), member("second", u32), member("third", array(u8, 1)))
	require.Len(t, file.Struct, 2)
	for _, v := range file.Struct { // PAY-8
		bothWays(t, with(plain, func(l *payload.Layout) { l.LengthWidth = v.LengthWidth }),
			fields{"first": -1, "second": 42, "third": []byte{1, 2, 3}}, v.Bytes)
	}

	members := structOf(tagged("first", 1, i16), tagged("second", 2, u32), tagged("third", 3, array(u8, 1)))
	members.DynamicLength = true
	option := with(structOf(tagged("value", 0, u32)), func(l *payload.Layout) { l.LengthWidth = 1 })
	values := fields{"first": -1, "second": 42, "third": []byte{1, 2, 3}}
	require.Len(t, file.TLV, 4)
	bothWays(t, with(members, func(l *payload.Layout) { l.LengthWidth = 2 }), values, file.TLV[0].Bytes)
	bothWays(t, members, values, file.TLV[1].Bytes)
	bothWays(t, option, fields{"value": 42}, file.TLV[2].Bytes)
	bothWays(t, option, fields{}, file.TLV[3].Bytes)
}

// TestTLVVectors are strings that the pysomeiptlv library wrote.
// PAY-10, PAY-13, PAY-14, PAY-25.
func TestTLVVectors(t *testing.T) {
	var file struct {
		Vectors []struct{ Name, Serialized string }
	}
	readVectors(t, "pysomeiptlv/someip-tlv-examples.json", &file)
	bare := payload.Text{BOM: true}
	layouts := map[string]*payload.Layout{
		"string.string":                     text(payload.PlainText, 2),
		"string.string_with_padding":        with(text(payload.PlainText, 2), func(l *payload.Layout) { l.Size = 30 }),
		"string.string_without_termination": text(bare, 2),
	}
	// Two set wrong lengths on purpose, and their members share a data id (PAY-27); one
	// has no length field, which a tagged string must have (PAY-28).
	short := func(l *payload.Layout) { l.LengthWidth = 1 }
	wrong := map[string]*payload.Layout{
		"simple_struct":        with(structOf(tagged("a", 0, boolean), tagged("b", 1, array(u8, 4))), short),
		"test":                 with(structOf(tagged("a", 0, boolean), tagged("b", 1, text(payload.PlainText, 4))), short),
		"string.string_static": structOf(tagged("s", 0, text(payload.PlainText, 2))),
	}
	seen := 0
	for _, v := range file.Vectors {
		switch l := layouts[v.Name]; {
		case l != nil:
			bothWays(t, structOf(tagged("s", 0, l)), fields{"s": "Hello, World!"}, v.Serialized)
		case v.Name == "single_int":
			bothWays(t, number(payload.Int, 4), 42, v.Serialized)
		case wrong[v.Name] != nil:
			codec, err := payload.Compile(wrong[v.Name], payload.Options{})
			require.NoError(t, err)
			_, err = codec.Decode(bytesOf(t, v.Serialized))
			require.ErrorIs(t, err, payload.ErrMalformed, v.Name)
		default:
			t.Errorf("%s: nothing shows it", v.Name)
		}
		seen++
	}
	require.Equal(t, len(layouts)+len(wrong)+1, seen)
}
