package payload

import (
	"encoding/binary"
	"math"
)

// Writer appends payload bytes for programs that know their types. Its first
// error sticks. It must not be shared between goroutines.
type Writer struct {
	b     []byte
	base  int // where the payload starts in b
	depth int
	err   error

	little, littleLength bool
}

// NewWriter returns a Writer that appends a big-endian payload to dst.
func NewWriter(dst []byte) *Writer { return &Writer{b: dst, base: len(dst)} }

// SetByteOrder chooses the byte order of numbers and of length and type fields
// from here on.
func (w *Writer) SetByteOrder(little, littleLength bool) {
	w.little, w.littleLength = little, littleLength
}

// Payload returns dst with the payload, or the first error.
func (w *Writer) Payload() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.b, nil
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }

// Offset returns the number of payload bytes written.
func (w *Writer) Offset() int { return len(w.b) - w.base }

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Raw appends bytes as they are.
func (w *Writer) Raw(b []byte) { w.b = append(w.b, b...) }

// Align appends zeros up to a multiple of n bytes, counted from the start of the
// message.
func (w *Writer) Align(n int) {
	if n > 1 {
		w.zeros(padding(w.Offset(), n))
	}
}

func (w *Writer) zeros(n int) {
	for range n {
		w.b = append(w.b, 0)
	}
}

// Uint appends the width low bytes of v: 1, 2, 4 or 8.
func (w *Writer) Uint(width uint8, v uint64) { w.b = appendNumber(w.b, width, v, w.little) }

func appendNumber(b []byte, width uint8, v uint64, little bool) []byte {
	switch width {
	case 1:
		return append(b, byte(v))
	case 2:
		if little {
			return binary.LittleEndian.AppendUint16(b, uint16(v))
		}
		return binary.BigEndian.AppendUint16(b, uint16(v))
	case 4:
		if little {
			return binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		return binary.BigEndian.AppendUint32(b, uint32(v))
	case 8:
		if little {
			return binary.LittleEndian.AppendUint64(b, v)
		}
		return binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// Bool appends a boolean as 0 or 1.
func (w *Writer) Bool(v bool) {
	if v {
		w.Uint8(1)
	} else {
		w.Uint8(0)
	}
}

// Uint8 appends an unsigned number of 8 bits.
func (w *Writer) Uint8(v uint8) { w.b = append(w.b, v) }

// Uint16 appends an unsigned number of 16 bits.
func (w *Writer) Uint16(v uint16) { w.Uint(2, uint64(v)) }

// Uint32 appends an unsigned number of 32 bits.
func (w *Writer) Uint32(v uint32) { w.Uint(4, uint64(v)) }

// Uint64 appends an unsigned number of 64 bits.
func (w *Writer) Uint64(v uint64) { w.Uint(8, v) }

// Int8 appends a signed number of 8 bits.
func (w *Writer) Int8(v int8) { w.Uint8(uint8(v)) }

// Int16 appends a signed number of 16 bits.
func (w *Writer) Int16(v int16) { w.Uint16(uint16(v)) }

// Int32 appends a signed number of 32 bits.
func (w *Writer) Int32(v int32) { w.Uint32(uint32(v)) }

// Int64 appends a signed number of 64 bits.
func (w *Writer) Int64(v int64) { w.Uint64(uint64(v)) }

// Float32 appends an IEEE 754 binary32.
func (w *Writer) Float32(v float32) { w.Uint32(math.Float32bits(v)) }

// Float64 appends an IEEE 754 binary64.
func (w *Writer) Float64(v float64) { w.Uint64(math.Float64bits(v)) }

// Mark is the place of a length field that End fills in.
type Mark struct {
	at    int
	width uint8
}

// Begin reserves a length field of width bytes: 0, 1, 2 or 4.
func (w *Writer) Begin(width uint8) Mark {
	if w.depth++; w.depth > MaxDepth {
		w.fail(fail(w.Offset(), ErrDepth, ""))
	}
	m := Mark{len(w.b), width}
	w.zeros(int(width))
	return m
}

// End writes the number of bytes since Begin into its length field.
func (w *Writer) End(m Mark) {
	w.depth--
	w.patch(m, len(w.b)-m.at-int(m.width))
}

// patch writes n into a length field.
func (w *Writer) patch(m Mark, n int) {
	if m.width > 0 && uint64(n) > maxUint(m.width) {
		w.fail(fail(m.at-w.base, ErrRange, "%d bytes, a length field of %d bytes counts up to %d", n, m.width, maxUint(m.width)))
		return
	}
	appendNumber(w.b[:m.at], m.width, uint64(n), w.littleLength)
}

// maxUint is the largest number in width bytes.
func maxUint(width uint8) uint64 {
	if width >= 8 {
		return math.MaxUint64
	}
	return 1<<(8*width) - 1
}

// String appends a string with a length field of width bytes.
func (w *Writer) String(width uint8, t Text, s string) {
	m := w.Begin(width)
	b, err := t.Append(w.b, []byte(s))
	if err != nil {
		w.fail(fail(w.Offset(), ErrText, "%s", reason(err)))
	}
	w.b = b
	w.End(m)
}

// FixedString appends a string of size bytes, filled up with zeros. A string
// that is too long is an error.
func (w *Writer) FixedString(size int, t Text, s string) {
	at := w.Offset()
	w.String(0, t, s)
	w.fill(at, size)
}

// fill appends zeros until size bytes have been written since at.
func (w *Writer) fill(at, size int) {
	n := size - (w.Offset() - at)
	if n < 0 {
		w.fail(fail(at, ErrRange, "%d bytes, exactly %d allowed", size-n, size))
		return
	}
	w.zeros(n)
}

// Bytes appends a byte sequence with a length field of width bytes.
func (w *Writer) Bytes(width uint8, b []byte) {
	m := w.Begin(width)
	w.Raw(b)
	w.End(m)
}
