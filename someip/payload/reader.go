package payload

import (
	"encoding/binary"
	"math"
)

// Reader is a cursor over payload bytes for programs that know their types. Its
// first error sticks: after it every read returns zero, so that a message is
// read in one go and [Reader.Err] asked once.
//
// A Reader reads the bytes it was given and never writes to them. It must not
// be shared between goroutines.
type Reader struct {
	b     []byte
	off   int
	end   int // of the innermost scope
	depth int
	err   error

	little, littleLength bool
}

// NewReader returns a Reader of big-endian payload bytes.
func NewReader(b []byte) *Reader { return &Reader{b: b, end: len(b)} }

// SetByteOrder chooses the byte order of numbers and of length and type fields
// from here on.
func (r *Reader) SetByteOrder(little, littleLength bool) {
	r.little, r.littleLength = little, littleLength
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Offset returns the number of bytes read.
func (r *Reader) Offset() int { return r.off }

// Remaining returns the number of bytes left in the innermost scope.
func (r *Reader) Remaining() int { return r.end - r.off }

// More reports whether the innermost scope has bytes left and nothing failed:
// the condition of a loop over the elements of an array.
func (r *Reader) More() bool { return r.err == nil && r.off < r.end }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.off = r.end
	}
}

// Next returns a view of the next n bytes, nil if they are not there.
func (r *Reader) Next(n int) []byte {
	if r.err != nil || n < 0 || n > r.end-r.off {
		r.fail(fail(r.off, ErrTruncated, "%d of %d bytes", r.end-r.off, n))
		return nil
	}
	b := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Rest returns a view of all bytes left in the innermost scope.
func (r *Reader) Rest() []byte { return r.Next(r.end - r.off) }

// Skip skips n bytes.
func (r *Reader) Skip(n int) { r.Next(n) }

// Align skips to a multiple of n bytes, counted from the start of the message.
func (r *Reader) Align(n int) {
	if n > 1 && r.err == nil {
		r.Skip(padding(r.off, n))
	}
}

// padding is the number of bytes from a payload offset to the next multiple of n.
func padding(off, n int) int { return (n - (off+HeaderSize)%n) % n }

// Uint reads an unsigned number of width bytes: 1, 2, 4 or 8.
func (r *Reader) Uint(width uint8) uint64 { return number(r.Next(int(width)), r.little) }

// Int reads a signed number of width bytes.
func (r *Reader) Int(width uint8) int64 { return signExtend(r.Uint(width), int(width)*8) }

// number returns the number in 0, 1, 2, 4 or 8 bytes.
func number(b []byte, little bool) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		if little {
			return uint64(binary.LittleEndian.Uint16(b))
		}
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		if little {
			return uint64(binary.LittleEndian.Uint32(b))
		}
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		if little {
			return binary.LittleEndian.Uint64(b)
		}
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func signExtend(v uint64, bits int) int64 {
	shift := 64 - bits
	return int64(v<<shift) >> shift
}

// Bool reads a boolean: bit 0 of a byte.
func (r *Reader) Bool() bool { return r.Uint8()&1 != 0 }

// Uint8 reads an unsigned number of 8 bits.
func (r *Reader) Uint8() uint8 { return uint8(r.Uint(1)) }

// Uint16 reads an unsigned number of 16 bits.
func (r *Reader) Uint16() uint16 { return uint16(r.Uint(2)) }

// Uint32 reads an unsigned number of 32 bits.
func (r *Reader) Uint32() uint32 { return uint32(r.Uint(4)) }

// Uint64 reads an unsigned number of 64 bits.
func (r *Reader) Uint64() uint64 { return r.Uint(8) }

// Int8 reads a signed number of 8 bits.
func (r *Reader) Int8() int8 { return int8(r.Uint(1)) }

// Int16 reads a signed number of 16 bits.
func (r *Reader) Int16() int16 { return int16(r.Uint(2)) }

// Int32 reads a signed number of 32 bits.
func (r *Reader) Int32() int32 { return int32(r.Uint(4)) }

// Int64 reads a signed number of 64 bits.
func (r *Reader) Int64() int64 { return int64(r.Uint(8)) }

// Float32 reads an IEEE 754 binary32.
func (r *Reader) Float32() float32 { return math.Float32frombits(r.Uint32()) }

// Float64 reads an IEEE 754 binary64.
func (r *Reader) Float64() float64 { return math.Float64frombits(r.Uint64()) }

// Scope is the stretch of bytes that a length field counts.
type Scope struct{ end int }

// Begin reads a length field of width bytes and narrows the reader to the bytes
// it counts, until End. With width 0 the scope is all that is left.
func (r *Reader) Begin(width uint8) Scope { return r.narrow(r.length(width)) }

// narrow begins a scope of n bytes.
func (r *Reader) narrow(n int) Scope {
	outer := Scope{r.end}
	r.enter()
	if r.err == nil && n > r.end-r.off {
		r.fail(fail(r.off, ErrTruncated, "%d of %d bytes", r.end-r.off, n))
	}
	if r.err == nil {
		r.end = r.off + n
	}
	return outer
}

func (r *Reader) enter() {
	if r.depth++; r.depth > MaxDepth {
		r.fail(fail(r.off, ErrDepth, ""))
	}
}

func (r *Reader) leave() { r.depth-- }

// length reads a length field and checks it against the bytes there are.
func (r *Reader) length(width uint8) int {
	if width == 0 || r.err != nil {
		return r.end - r.off
	}
	at := r.off
	n := number(r.Next(int(width)), r.littleLength)
	if left := r.end - r.off; r.err == nil && n > uint64(left) {
		r.fail(fail(at, ErrTruncated, "length %d, %d bytes left", n, left))
		return 0
	}
	return int(n)
}

// End leaves a scope, skipping what is left of it: bytes that a newer sender may
// have added (someip.md 5.2).
func (r *Reader) End(s Scope) {
	r.leave()
	r.off, r.end = r.end, s.end
	if r.err != nil {
		r.off = r.end
	}
}

// String reads a string with a length field of width bytes.
func (r *Reader) String(width uint8, t Text) string { return string(r.AppendText(nil, width, t)) }

// AppendText reads a string with a length field of width bytes and appends it to
// dst as UTF-8.
func (r *Reader) AppendText(dst []byte, width uint8, t Text) []byte {
	return r.text(dst, r.length(width), t, decodeMode{})
}

// FixedString reads a string of size bytes, which ends at its first NUL.
func (r *Reader) FixedString(size int, t Text) string {
	return string(r.text(nil, size, t, decodeMode{fixed: true}))
}

func (r *Reader) text(dst []byte, size int, t Text, mode decodeMode) []byte {
	start := r.off
	raw := r.Next(size)
	if r.err != nil {
		return dst
	}
	out, err := t.decode(dst, raw, mode)
	if err != nil {
		r.fail(shift(err, start))
		return dst
	}
	return out
}

// Bytes reads a byte sequence with a length field of width bytes and returns a
// view of it.
func (r *Reader) Bytes(width uint8) []byte { return r.Next(r.length(width)) }
