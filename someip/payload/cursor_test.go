package payload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/payload"
)

func writeAll(w *payload.Writer) {
	w.Bool(true)
	w.Uint8(200)
	w.Int8(-2)
	w.Uint16(0x0102)
	w.Int16(-3)
	w.Uint32(0x01020304)
	w.Int32(-4)
	w.Uint64(0x0102030405060708)
	w.Int64(-5)
	w.Float32(19.5)
	w.Float64(42.5)
	w.String(4, payload.PlainText, "zone")
	w.FixedString(16, payload.PlainText, "fixed")
	w.Bytes(2, []byte{1, 2, 3})
	w.Align(8)
	array := w.Begin(2)
	for i := range 3 {
		element := w.Begin(1)
		w.Uint8(uint8(i))
		w.End(element)
	}
	w.End(array)
}

// PAY-10, PAY-16.
func TestCursors(t *testing.T) {
	for _, little := range []bool{false, true} {
		w := payload.NewWriter([]byte{0xEE})
		w.SetByteOrder(little, little)
		writeAll(w)
		b, err := w.Payload()
		require.NoError(t, err)
		require.NoError(t, w.Err())
		require.Equal(t, len(b)-1, w.Offset())

		r := payload.NewReader(b[1:])
		r.SetByteOrder(little, little)
		require.True(t, r.Bool())
		require.Equal(t, uint8(200), r.Uint8())
		require.Equal(t, int8(-2), r.Int8())
		require.Equal(t, uint16(0x0102), r.Uint16())
		require.Equal(t, int16(-3), r.Int16())
		require.Equal(t, uint32(0x01020304), r.Uint32())
		require.Equal(t, int32(-4), r.Int32())
		require.Equal(t, uint64(0x0102030405060708), r.Uint64())
		require.Equal(t, int64(-5), r.Int64())
		require.InDelta(t, 19.5, r.Float32(), 0)
		require.InDelta(t, 42.5, r.Float64(), 0)
		require.Equal(t, "zone", r.String(4, payload.PlainText))
		require.Equal(t, "fixed", r.FixedString(16, payload.PlainText))
		require.Equal(t, []byte{1, 2, 3}, r.Bytes(2))
		r.Align(8)
		array := r.Begin(2)
		count := uint8(0)
		for ; r.More(); count++ {
			element := r.Begin(1)
			require.Equal(t, count, r.Uint8())
			r.End(element)
		}
		r.End(array)
		require.Equal(t, uint8(3), count)
		require.Zero(t, r.Remaining())
		require.NoError(t, r.Err())
	}
}

// PAY-31.
func TestReaderErrorsStick(t *testing.T) {
	r := payload.NewReader([]byte{0, 0, 0, 9, 1, 2})
	scope := r.Begin(4)
	require.Zero(t, r.Uint16())
	r.End(scope)
	require.False(t, r.More())
	require.Empty(t, r.String(1, payload.PlainText))
	require.Empty(t, r.Rest())
	require.EqualError(t, r.Err(), "payload: malformed: truncated: length 9, 2 bytes left at byte 0")

	r = payload.NewReader(nil)
	require.Zero(t, r.Uint64())
	require.ErrorIs(t, r.Err(), payload.ErrTruncated)

	r = payload.NewReader(make([]byte, 100))
	for range payload.MaxDepth + 1 {
		r.Begin(0)
	}
	require.ErrorIs(t, r.Err(), payload.ErrDepth)
}

// PAY-9.
func TestReaderSkipsSurplus(t *testing.T) { // someip.md 5.2
	r := payload.NewReader([]byte{3, 1, 0xA5, 0xA5, 7})
	scope := r.Begin(1)
	require.Equal(t, uint8(1), r.Uint8())
	r.End(scope)
	require.Equal(t, uint8(7), r.Uint8())
	require.NoError(t, r.Err())
}

func TestWriterErrorsStick(t *testing.T) {
	w := payload.NewWriter(nil)
	m := w.Begin(1)
	w.Raw(make([]byte, 256))
	w.End(m)
	w.Uint8(1)
	_, err := w.Payload()
	require.EqualError(t, err, "payload: out of range: 256 bytes, a length field of 1 bytes counts up to 255 at byte 0")

	w = payload.NewWriter(nil)
	w.Uint8(1)
	w.FixedString(8, payload.PlainText, "longer")
	require.EqualError(t, w.Err(), "payload: out of range: 10 bytes, exactly 8 allowed at byte 1")

	w = payload.NewWriter(nil)
	w.String(1, payload.PlainText, "\x00")
	require.ErrorIs(t, w.Err(), payload.ErrText)
}

func TestCursorsDoNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, 512)
	var b []byte
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w := payload.NewWriter(buffer)
		writeAll(w)
		b, _ = w.Payload()
	}))
	text := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := payload.NewReader(b)
		r.Skip(1 + 1 + 1 + 2 + 2 + 4 + 4 + 8 + 8 + 4 + 8)
		_ = r.AppendText(text, 4, payload.PlainText)
		r.Skip(16)
		_ = r.Bytes(2)
		r.Align(8)
		for scope := r.Begin(2); r.More(); {
			_ = r.Bytes(1)
			_ = scope
		}
	}))
}

func TestPath(t *testing.T) {
	require.Equal(t, "vents[2].opening", payload.JoinPath("vents", payload.JoinPath("[2]", "opening")))
	require.Equal(t, "a.b", payload.JoinPath("a", "b"))
	require.Equal(t, "a", payload.JoinPath("a", ""))
	require.True(t, strings.HasPrefix(payload.Union.String(), "union"))
}
