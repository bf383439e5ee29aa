package payload_test

import (
	"fmt"

	"carisma.dev/gateway/someip/payload"
)

// A codec takes Go values for a layout that is known only at run time.
func ExampleCodec() {
	byteLayout := &payload.Layout{Kind: payload.Uint, Width: 1}
	vent := &payload.Layout{Kind: payload.Struct, LengthWidth: 2, Members: []payload.Member{
		{Name: "position", Layout: byteLayout},
		{Name: "opening", Layout: byteLayout},
	}}
	codec, err := payload.Compile(&payload.Layout{Kind: payload.Array, LengthWidth: 2, Elem: vent}, payload.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := codec.Append(nil, []any{map[string]any{"position": 1, "opening": 80}})
	fmt.Printf("% x %v\n", b, err)
	value, err := codec.Decode(b)
	fmt.Println(value, err)
	_, err = codec.Append(nil, []any{map[string]any{"position": 1, "opening": 300}})
	fmt.Println(err)
	// Output:
	// 00 04 00 02 01 50 <nil>
	// [map[opening:80 position:1]] <nil>
	// payload: [0].opening: out of range: 300, 0 to 255 allowed
}

// Programs that know their types use the cursors.
func ExampleReader() {
	w := payload.NewWriter(nil)
	w.String(4, payload.PlainText, "left")
	samples := w.Begin(2)
	w.Uint16(800)
	w.Uint16(801)
	w.End(samples)
	b, err := w.Payload()
	fmt.Printf("% x %v\n", b, err)

	r := payload.NewReader(b)
	zone := r.String(4, payload.PlainText)
	var values []uint16
	scope := r.Begin(2)
	for r.More() {
		values = append(values, r.Uint16())
	}
	r.End(scope)
	fmt.Println(zone, values, r.Err())
	// Output:
	// 00 00 00 08 ef bb bf 6c 65 66 74 00 00 04 03 20 03 21 <nil>
	// left [800 801] <nil>
}
