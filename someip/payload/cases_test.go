package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

// Faults of other stacks, by the numbers of the list of interop cases.

// Case 116, PAY-6: an enum has the width of its layout both ways, whatever its
// value needs.
func TestCase116EnumWidth(t *testing.T) {
	for width, want := range map[uint8]string{1: "02", 2: "0002", 4: "00000002", 8: "0000000000000002"} {
		codec, err := payload.Compile(number(payload.Enum, width), payload.Options{Strict: true})
		require.NoError(t, err)
		b, err := codec.Append(nil, uint64(2))
		require.NoError(t, err)
		require.Equal(t, bytesOf(t, want), b)
		value, err := codec.Decode(b)
		require.NoError(t, err)
		require.Equal(t, uint64(2), value)
		_, err = codec.Decode(b[:width-1])
		require.ErrorIs(t, err, payload.ErrMalformed, "a narrower form is not taken")
	}
	_, err := payload.Compile(number(payload.Enum, 0), payload.Options{})
	require.Error(t, err, "no width is guessed")
}

// Case 118, PAY-2: length and type fields in the order of the network or of the
// payload, apart from that of the elements.
func TestCase118LengthFieldOrder(t *testing.T) {
	elements := []any{uint64(1), uint64(0x0203)}
	choice := payload.Alternative{Type: 1, Value: uint64(5)}
	for _, c := range []struct {
		name   string
		layout *payload.Layout
		value  any
		bytes  string
	}{
		{"network, network", array(u16, 4), elements, "00000004 0001 0203"},
		{"payload, payload", little(array(little(u16), 4)), elements, "04000000 0100 0302"},
		{"network, payload", array(little(u16), 4), elements, "00000004 0100 0302"},
		{"payload, network", little(array(u16, 4)), elements, "04000000 0001 0203"},
		{"union", little(union), choice, "01000000 01000000 05"},
		{"string", little(text(payload.Text{}, 2)), "abc", "0300 616263"},
		{"map", little(mapping), []payload.Entry{{Key: uint64(1), Value: uint64(2)}}, "02000000 0102"},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec, err := payload.Compile(c.layout, payload.Options{Strict: true})
			require.NoError(t, err)
			b, err := codec.Append(nil, c.value)
			require.NoError(t, err)
			require.Equal(t, bytesOf(t, c.bytes), b)
			value, err := codec.Decode(b)
			require.NoError(t, err)
			require.Equal(t, c.value, value)
		})
	}
}

// Case 119, PAY-19: a fixed array takes exactly its number of elements, written
// and read.
func TestCase119FixedArray(t *testing.T) {
	fixed := with(array(u16, 0), func(l *payload.Layout) { l.Count = 8 })
	codec, err := payload.Compile(structOf(member("a", fixed), member("after", u8)), payload.Options{})
	require.NoError(t, err)
	five := make(list, 5)
	eight := make(list, 8)
	for i := range eight {
		eight[i] = uint64(i)
		if i < len(five) {
			five[i] = uint64(i)
		}
	}
	_, err = codec.Append(nil, fields{"a": five, "after": 9})
	require.EqualError(t, err, "payload: a: out of range: 5 elements, exactly 8 allowed")
	want := fields{"a": eight, "after": uint64(9)}
	b, err := codec.Append(nil, want)
	require.NoError(t, err)
	require.Len(t, b, 17)
	got, err := codec.Decode(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = codec.Decode(b[:11])
	require.ErrorIs(t, err, payload.ErrMalformed)
}

// Case 125, PAY-14: a string without mark and terminator is taken by a tolerant
// reader and refused by a strict one; ours has both, and its length counts them.
func TestCase125BareString(t *testing.T) {
	l := text(payload.PlainText, 4)
	strict, err := payload.Compile(l, payload.Options{Strict: true})
	require.NoError(t, err)
	tolerant, err := payload.Compile(l, payload.Options{})
	require.NoError(t, err)
	bare := bytesOf(t, "00000003 616263")
	_, err = strict.Decode(bare)
	require.ErrorIs(t, err, payload.ErrMalformed)
	value, err := tolerant.Decode(bare)
	require.NoError(t, err)
	require.Equal(t, "abc", value)
	for _, codec := range []*payload.Codec{strict, tolerant} {
		b, err := codec.Append(nil, "abc")
		require.NoError(t, err)
		require.Equal(t, bytesOf(t, "00000007 efbbbf 616263 00"), b)
	}
	for _, short := range []string{"00000000", "00000003 efbbbf", "00000001 00"} {
		_, err = strict.Decode(bytesOf(t, short))
		require.ErrorIs(t, err, payload.ErrMalformed, short)
		value, err = tolerant.Decode(bytesOf(t, short))
		require.NoError(t, err, short)
		require.Empty(t, value, short)
	}
}

// PAY-32: an argument list is a struct, of tagged members too; only which of the
// two it is must be known.
func TestTaggedArguments(t *testing.T) {
	args := structOf(tagged("speed", 1, u16), tagged("name", 2, text(payload.PlainText, 1)))
	codec, err := payload.Compile(args, payload.Options{Strict: true})
	require.NoError(t, err)
	want := fields{"speed": uint64(7)}
	b, err := codec.Append(nil, want)
	require.NoError(t, err)
	require.Equal(t, bytesOf(t, "1001 0007"), b)
	got, err := codec.Decode(b)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
