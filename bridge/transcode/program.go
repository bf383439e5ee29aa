package transcode

import (
	"cmp"
	"slices"

	"carisma.dev/gateway/someip/payload"
)

// program is the flat list of what to do for one struct.
type program struct {
	fields []field // as SOME/IP has them: in order of declaration
	// lookup finds the fields that protobuf has, by number; the alternatives of a
	// union are separate entries.
	lookup numbers
	// order is that of the fields in protobuf, nil if it is the order of
	// declaration. It is known only afterwards where members are found by data id.
	order   []uint16
	tagged  bool // members are found by data id
	dynamic bool // the width of a tagged member's length field is chosen
	unknown node // says how long a tagged member is that the interface does not know
}

// field is a member of a struct.
type field struct {
	node
	name string
	// explicit members are written to protobuf also with their default value.
	explicit bool
	optional bool
	dataID   uint16
	// firstBit and runBytes place a packed member in its run of bits: all members
	// of a run share the bytes that the first one has.
	firstBit uint16
	runBytes uint16
}

// op is what kind of value a node translates.
type op uint8

const (
	opScalar op = iota
	opString
	opBytes
	opStruct
	opArray // also a map: its elements are structs of key and value
	opUnion
)

// node is a type in one place. It is small, so that the members of a struct that
// are numbers lie close together; what only other kinds need is in the shape.
type node struct {
	op     op
	packed bool // an array of numbers in one run
	align  uint8
	tag    uint64 // number and wire type in protobuf
	scalar scalar
	*shape
}

// shape is what a node that is no number needs. Numbers share an empty one.
type shape struct {
	lengthWidth  uint8
	littleLength bool

	text payload.Text
	size int    // of a string or bytes of fixed size, else 0
	max  uint64 // bytes of a string, elements of an array, bytes of a union without length; 0 for no limit

	count    int // of a fixed array, else 0
	elem     *node
	elemSize int // of elements that always take the same bytes, else 0

	program *program
	least   int // about how many bytes it takes in protobuf

	alternatives []field // of a union: the first has type 1
	typeWidth    uint8
	typeFirst    bool
}

var noShape = &shape{}

// numbers finds fields by their number in protobuf.
type numbers struct {
	sorted []entry
	direct []target // of the numbers below maxDirect
}

type entry struct {
	number uint32
	target target
}

// target is a field of a program, and which alternative of it, counted from 1,
// if it is a union.
type target struct {
	field       uint16 // index + 1; 0 for none
	alternative uint16
}

const maxDirect = 256

func byNumber(a, b entry) int { return cmp.Compare(a.number, b.number) }

func newNumbers(entries []entry) numbers {
	slices.SortFunc(entries, byNumber)
	n := numbers{sorted: entries}
	for _, e := range entries {
		if e.number < maxDirect {
			n.direct = append(n.direct, make([]target, int(e.number)+1-len(n.direct))...)
			n.direct[e.number] = e.target
		}
	}
	return n
}

func (n *numbers) find(number uint64) target {
	if number < uint64(len(n.direct)) {
		return n.direct[number]
	}
	if number < maxDirect {
		return target{}
	}
	i, ok := slices.BinarySearchFunc(n.sorted, number, func(e entry, number uint64) int {
		return cmp.Compare(uint64(e.number), number)
	})
	if !ok {
		return target{}
	}
	return n.sorted[i].target
}
