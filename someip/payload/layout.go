// Package payload is the serialisation of SOME/IP payloads.
//
// A [Layout] describes the bytes of one type in one place. [Compile] makes a
// [Codec] of it, which translates between bytes and Go values. Programs that
// know their types use [Reader] and [Writer], cursors whose first error sticks.
//
// Every length is checked against the bytes that are there before it is used, so
// that no hostile length sizes an allocation; nesting and element counts are
// limited.
package payload

// Kind is the kind of a type on the wire.
type Kind uint8

// The kinds of types.
const (
	Invalid Kind = iota
	Bool         // one byte, or Bits bits
	Uint
	Int
	Float
	Enum // an unsigned number; Signed makes it two's complement
	String
	Bytes
	Array
	Struct // also an argument list
	Map
	Union
)

var kindNames = [...]string{
	"invalid", "bool", "uint", "int", "float", "enum", "string", "bytes", "array", "struct", "map", "union",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Scalar says that values of the kind have a fixed width and no inner structure.
func (k Kind) Scalar() bool { return k >= Bool && k <= Enum }

// Layout is how SOME/IP carries a type in one place. A Layout in use must not
// change. It may refer to itself below a dynamic array, a map, a union or an
// optional member.
type Layout struct {
	Kind Kind
	// Width is the number of bytes of a number: 1, 2, 4 or 8; 4 or 8 for a float;
	// 1, 2 or 4 for the type field of a union.
	Width uint8
	// Bits, if not 0, packs a bool or number of that many bits together with its
	// neighbours in a struct, least significant bit first; bytes are filled
	// before the next begins (CommonAPI's SomeIpIntegerBitWidth). A member without
	// Bits begins with a new byte.
	Bits   uint8
	Signed bool // of an enum

	// LengthWidth is the number of bytes of the length field of a string, bytes,
	// array, struct, map or union: 0, 1, 2 or 4.
	LengthWidth uint8
	// Count is the exact number of elements of an array; 0 for a dynamic one. An
	// array with a count may have a length field too.
	Count uint32
	// Max is the largest number of elements of an array or map, or of bytes of a
	// string or bytes with all that belongs to them; 0 for no limit. A union
	// without length field is padded to Max bytes.
	Max uint32
	// Size is the exact number of bytes of a string or bytes, 0 for a dynamic one.
	Size uint32

	Text Text // of a string

	// TypeFirst puts the type field of a union before its length field.
	TypeFirst bool

	// LittleEndian is the byte order of a number, or of the length and type fields
	// of a type that has them; else it is big endian.
	LittleEndian bool

	// Align is the alignment in bytes, a power of two up to 32, counted from the
	// start of the SOME/IP message; 0 and 1 for none.
	Align uint8

	Elem *Layout // of an array, the values of a map
	Key  *Layout // of a map
	// Members are those of a struct in order, or the alternatives of a union, the
	// first of which has type 1.
	Members []Member
	// DynamicLength makes the writer of a struct of tagged members choose the
	// smallest length field for each (wire types 5 to 7) in place of the
	// configured one (wire type 4). Readers accept both.
	DynamicLength bool
}

// Member is a member of a struct or an alternative of a union.
type Member struct {
	Name   string
	Layout *Layout
	// Tagged members have a data id, and are found by it (TLV). Either all
	// members of a struct are tagged or none.
	Tagged bool
	DataID uint16 // up to 0xFFF
	// Optional members may be absent. They must be tagged.
	Optional bool
}

// tagged says that the struct's members are found by data id.
func (l *Layout) tagged() bool { return len(l.Members) > 0 && l.Members[0].Tagged }

// HeaderSize is the size of the SOME/IP header. Alignment counts from its start.
const HeaderSize = 16

// MaxDepth is the deepest nesting that readers, writers and codecs accept.
const MaxDepth = 32
