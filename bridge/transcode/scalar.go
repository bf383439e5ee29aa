package transcode

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// scalar is a bool, number or enum: how SOME/IP and protobuf carry it, and which
// values both can. Between them a value is 64 bits wide, sign-extended where the
// carrier is signed, and the bits of a float.
type scalar struct {
	load   load
	signed bool  // on SOME/IP
	bits   uint8 // on SOME/IP: 8 times the width, or less of a packed one
	width  uint8 // in bytes
	form   form
	resize resize
	// plain says that protobuf carries the value as it is, whatever it is.
	plain bool
	// negative says that protobuf carries negative numbers.
	negative bool
	// lo and hi are the least and the largest value that both sides can carry.
	lo       int64
	hi       uint64
	enum     bool
	literals *literals // of an enum, nil allows all values
}

// literals are the values of an enum, sorted. Those without gaps are told by the
// first and last.
type literals struct {
	values []int64
	dense  bool
}

// load is how a number lies in SOME/IP bytes.
type load uint8

const (
	load8 load = iota
	load16be
	load32be
	load64be
	load16le
	load32le
	load64le
	loadBits // packed bits
)

// form is how protobuf carries a number.
type form uint8

const (
	formInt32 form = iota // also enum
	formInt64             // also uint64
	formUint32
	formSint32
	formSint64
	formBool
	formFixed32
	formSfixed32
	formFixed64 // also sfixed64
	formFloat
	formDouble
)

// resize says that the sides have floats of different sizes.
type resize uint8

const (
	resizeNone     resize = iota
	resizeToDouble        // binary32 on SOME/IP, double in protobuf
	resizeToFloat         // binary64 on SOME/IP, float in protobuf
)

// read returns the value at the start of b, which must be long enough.
func (s *scalar) read(b []byte) uint64 {
	var v uint64
	switch s.load {
	case load8:
		v = uint64(b[0])
	case load16be:
		v = uint64(binary.BigEndian.Uint16(b))
	case load32be:
		v = uint64(binary.BigEndian.Uint32(b))
	case load64be:
		return binary.BigEndian.Uint64(b)
	case load16le:
		v = uint64(binary.LittleEndian.Uint16(b))
	case load32le:
		v = uint64(binary.LittleEndian.Uint32(b))
	case load64le:
		return binary.LittleEndian.Uint64(b)
	case loadBits:
		return 0 // read by the run of bits it is in
	}
	return s.extend(v)
}

// extend extends the sign of a value of s.bits bits.
func (s *scalar) extend(v uint64) uint64 {
	if s.signed {
		shift := 64 - s.bits
		return uint64(int64(v<<shift) >> shift)
	}
	return v
}

// write appends a value that fits.
func (s *scalar) write(dst []byte, v uint64) []byte {
	switch s.load {
	case load8:
		return append(dst, byte(v))
	case load16be:
		return binary.BigEndian.AppendUint16(dst, uint16(v))
	case load32be:
		return binary.BigEndian.AppendUint32(dst, uint32(v))
	case load64be:
		return binary.BigEndian.AppendUint64(dst, v)
	case load16le:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	case load32le:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	case load64le:
		return binary.LittleEndian.AppendUint64(dst, v)
	default:
		return dst // packed bits are written by the run they are in
	}
}

// fits says that both sides can carry an integer.
func (s *scalar) fits(v uint64) bool {
	return v <= s.hi || int64(v) < 0 && int64(v) >= s.lo
}

// toProto converts a value from SOME/IP to what protobuf carries. A plain one need
// not be converted.
func (s *scalar) toProto(v uint64, offset int) (uint64, *Error) {
	switch s.form {
	case formBool:
		return v & 1, nil // receivers look only at bit 0 (someip.md 5.1)
	case formFloat, formDouble:
		if s.resize != resizeNone {
			return s.resized(v, offset, s.resize == resizeToDouble)
		}
		return v, nil
	default: // an integer
	}
	if !s.fits(v) {
		if s.enum && s.width == 4 {
			return uint64(int64(int32(v))), nil // an enum keeps its 32 bits
		}
		return 0, s.rangeError(v, s.signed, offset)
	}
	if s.form == formSint32 || s.form == formSint64 {
		v = protowire.EncodeZigZag(int64(v))
	}
	return v, nil
}

// toSOMEIP converts the bits that protobuf carries to what write takes.
func (s *scalar) toSOMEIP(v uint64, offset int) (uint64, *Error) {
	switch s.form {
	case formBool:
		if v != 0 {
			return 1, nil
		}
		return 0, nil
	case formFloat, formDouble:
		if s.form == formFloat {
			v = uint64(uint32(v))
		}
		if s.resize != resizeNone {
			return s.resized(v, offset, s.resize == resizeToFloat)
		}
		return v, nil
	case formInt32, formSfixed32:
		v = uint64(int64(int32(v)))
	case formUint32, formFixed32:
		v = uint64(uint32(v))
	case formSint32:
		v = uint64(protowire.DecodeZigZag(uint64(uint32(v))))
	case formSint64:
		v = uint64(protowire.DecodeZigZag(v))
	default: // all 64 bits are the value
	}
	if !s.fits(v) {
		return 0, s.rangeError(v, s.negative, offset)
	}
	if s.literals != nil && !s.literals.known(int64(v)) {
		return 0, &Error{Offset: offset, Err: ErrEnum, Reason: strconv.FormatInt(int64(v), 10) + " is none of the literals"}
	}
	return v, nil
}

func (l *literals) known(v int64) bool {
	if l.dense {
		return l.values[0] <= v && v <= l.values[len(l.values)-1]
	}
	_, ok := slices.BinarySearch(l.values, v)
	return ok
}

// resized converts the bits of a float to those of the other size.
func (s *scalar) resized(v uint64, offset int, widen bool) (uint64, *Error) {
	if widen {
		return math.Float64bits(float64(math.Float32frombits(uint32(v)))), nil
	}
	double := math.Float64frombits(v)
	single := float32(double)
	if math.IsInf(float64(single), 0) && !math.IsInf(double, 0) {
		return 0, outOfRange(offset, "%g, up to %g allowed", double, float32(math.MaxFloat32))
	}
	return uint64(math.Float32bits(single)), nil
}

func (s *scalar) rangeError(v uint64, signed bool, offset int) *Error {
	got := strconv.FormatUint(v, 10)
	if signed {
		got = strconv.FormatInt(int64(v), 10)
	}
	return outOfRange(offset, "%s, %d to %d allowed", got, s.lo, s.hi)
}

// emit appends what toProto returned to protobuf bytes, without tag.
func (s *scalar) emit(dst []byte, v uint64) []byte {
	switch s.form {
	case formFixed32, formSfixed32, formFloat:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	case formFixed64, formDouble:
		return binary.LittleEndian.AppendUint64(dst, v)
	default:
		return appendVarint(dst, v)
	}
}

// wireType is the type of a single value of the form.
func (f form) wireType() protowire.Type {
	switch f {
	case formFixed32, formSfixed32, formFloat:
		return protowire.Fixed32Type
	case formFixed64, formDouble:
		return protowire.Fixed64Type
	default:
		return protowire.VarintType
	}
}

// appendVarint appends a varint, most often one of a byte.
func appendVarint(dst []byte, v uint64) []byte {
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return protowire.AppendVarint(dst, v)
}
