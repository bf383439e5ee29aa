package model

// Kind is the kind of a type.
type Kind uint8

// The kinds of types.
const (
	Invalid Kind = iota
	Bool
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	String
	Bytes
	EnumKind
	StructKind
	ArrayKind
	MapKind
	UnionKind
)

// Type is a type as used in one place, with its deployment there.
type Type struct {
	Kind   Kind
	Enum   *Enum   // of EnumKind
	Struct *Struct // of StructKind and UnionKind (its members are the alternatives)
	Elem   *Type   // of ArrayKind and MapKind
	Key    *Type   // of MapKind
	SOMEIP SOMEIPType
	Proto  ProtoType
}

// ProtoType says how protobuf carries a type.
type ProtoType uint8

// The protobuf scalar types, and messages.
const (
	ProtoInvalid ProtoType = iota
	ProtoDouble
	ProtoFloat
	ProtoInt64
	ProtoUint64
	ProtoInt32
	ProtoFixed64
	ProtoFixed32
	ProtoBool
	ProtoString
	ProtoMessage
	ProtoBytes
	ProtoUint32
	ProtoEnum
	ProtoSfixed32
	ProtoSfixed64
	ProtoSint32
	ProtoSint64
)

// Struct is a struct type, or the argument list of a method or event.
type Struct struct {
	Pos     Position
	Name    string // full name of the message
	Members []*Member
	SOMEIP  SOMEIPStruct
}

// Member is a member of a struct, in declaration order.
type Member struct {
	Pos    Position
	Name   string
	Type   *Type
	Number int32 // protobuf field number
	// Optional members have explicit presence in protobuf; on SOME/IP they need
	// a data id.
	Optional bool
	// Packed repeated members are written as one run.
	Packed bool
}

// Enum is an enumeration. Values outside Literals survive a translation.
type Enum struct {
	Pos      Position
	Name     string
	Literals []Literal
	Width    uint8 // bytes on SOME/IP
}

// Literal is a named value of an enumeration.
type Literal struct {
	Name  string
	Value int64
}
