package transcode

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip/payload"
)

// compiler keeps the programs of structs, so that a recursive type ends.
type compiler struct{ programs map[*payload.Layout]*program }

// program compiles a struct, whose layout has the same members.
func (c compiler) program(s *model.Struct, layout *payload.Layout) (*program, error) {
	if p := c.programs[layout]; p != nil {
		return p, nil
	}
	p := &program{dynamic: layout.DynamicLength}
	c.programs[layout] = p
	if len(s.Members) >= math.MaxUint16 {
		return nil, fmt.Errorf("%d members", len(s.Members))
	}
	var entries []entry
	for i, m := range s.Members {
		f, err := c.field(m, layout.Members[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		entries = append(entries, entriesOf(m, i)...)
		p.fields = append(p.fields, f)
		p.tagged = p.tagged || layout.Members[i].Tagged
	}
	p.placeBits()
	if order := protoOrder(s); p.tagged || !slices.IsSorted(order) {
		p.order = order
	}
	p.lookup = newNumbers(entries)
	if err := checkNumbers(p.lookup.sorted); err != nil {
		return nil, err
	}
	p.unknown = node{shape: &shape{lengthWidth: 4}}
	for i := range p.fields {
		if n := &p.fields[i].node; n.op != opScalar {
			p.unknown = node{shape: &shape{lengthWidth: n.lengthWidth, littleLength: n.littleLength}}
			break
		}
	}
	return p, nil
}

// entriesOf returns the number of a member, or of the alternatives of a union.
func entriesOf(m *model.Member, i int) []entry {
	if m.Type.Kind != model.UnionKind {
		return []entry{{uint32(m.Number), target{field: uint16(i + 1)}}}
	}
	var entries []entry
	for j, a := range m.Type.Struct.Members {
		entries = append(entries, entry{uint32(a.Number), target{uint16(i + 1), uint16(j + 1)}})
	}
	return entries
}

// protoOrder returns the members in the order in which protobuf-go writes them:
// by number, behind them the unions.
func protoOrder(s *model.Struct) []uint16 {
	number := func(i uint16) int32 {
		if s.Members[i].Type.Kind == model.UnionKind {
			return math.MaxInt32
		}
		return s.Members[i].Number
	}
	order := make([]uint16, len(s.Members))
	for i := range order {
		order[i] = uint16(i)
	}
	slices.SortStableFunc(order, func(a, b uint16) int { return cmp.Compare(number(a), number(b)) })
	return order
}

func checkNumbers(sorted []entry) error {
	for i, e := range sorted {
		if !protowire.Number(e.number).IsValid() {
			return fmt.Errorf("field number %d", e.number)
		}
		if i > 0 && e.number == sorted[i-1].number {
			return fmt.Errorf("field number %d twice", e.number)
		}
	}
	return nil
}

// placeBits gives the packed members their places in runs of bits.
func (p *program) placeBits() {
	head := -1
	used := 0
	for i := range p.fields {
		f := &p.fields[i]
		if f.op != opScalar || f.scalar.load != loadBits || f.align > 1 {
			head = -1
		}
		if f.op != opScalar || f.scalar.load != loadBits {
			continue
		}
		if head < 0 {
			head, used = i, 0
		}
		f.firstBit = uint16(used)
		used += int(f.scalar.bits)
		p.fields[head].runBytes = uint16((used + 7) / 8)
	}
}

func (c compiler) field(m *model.Member, lowered payload.Member) (field, error) {
	n, err := c.node(m.Type, lowered.Layout, m.Number)
	if err != nil {
		return field{}, err
	}
	if n.op == opArray && n.elem.op == opScalar {
		n.packed = m.Packed
		if m.Packed {
			n.tag = protowire.EncodeTag(protowire.Number(m.Number), protowire.BytesType)
		}
	}
	return field{node: n, name: m.Name, explicit: m.Optional, optional: m.Optional, dataID: lowered.DataID}, nil
}

// node compiles a type that protobuf carries under a number.
func (c compiler) node(t *model.Type, l *payload.Layout, number int32) (node, error) {
	if l.Kind.Scalar() {
		s, err := newScalar(t, l)
		tag := protowire.EncodeTag(protowire.Number(number), s.form.wireType())
		return node{align: l.Align, scalar: s, tag: tag, shape: noShape}, err
	}
	n := node{
		align: l.Align,
		tag:   protowire.EncodeTag(protowire.Number(number), protowire.BytesType),
		shape: &shape{
			lengthWidth:  l.LengthWidth,
			littleLength: l.LittleEndian,
			max:          uint64(l.Max),
			size:         int(l.Size),
		},
	}
	switch l.Kind {
	case payload.String, payload.Bytes:
		return n, n.setString(t, l)
	case payload.Struct:
		n.op = opStruct
		if t.Proto != model.ProtoMessage {
			return n, mismatch(t)
		}
		var err error
		n.program, err = c.program(t.Struct, l)
		if err == nil {
			n.least = n.program.least()
		}
		return n, err
	case payload.Union:
		return n, c.setUnion(&n, t, l)
	case payload.Array:
		n.op = opArray
		n.count = int(l.Count)
		return n, c.setElem(&n, t.Elem, l.Elem, number)
	case payload.Map:
		n.op = opArray
		entry, layout := mapEntry(t, l)
		err := c.setElem(&n, entry, layout, number)
		if err == nil {
			// Entries have key and value, also those with default values.
			for i := range n.elem.program.fields {
				n.elem.program.fields[i].explicit = true
			}
		}
		return n, err
	default:
		return n, mismatch(t)
	}
}

func mismatch(t *model.Type) error {
	return fmt.Errorf("protobuf type %d cannot carry kind %d", t.Proto, t.Kind)
}

func (n *node) setString(t *model.Type, l *payload.Layout) error {
	n.op, n.text = opString, l.Text
	if l.Kind == payload.Bytes {
		n.op = opBytes
	}
	if t.Proto != model.ProtoString && t.Proto != model.ProtoBytes || (t.Proto == model.ProtoBytes) != (n.op == opBytes) {
		return mismatch(t)
	}
	return nil
}

func (c compiler) setElem(n *node, t *model.Type, l *payload.Layout, number int32) error {
	elem, err := c.node(t, l, number)
	if err != nil {
		return fmt.Errorf("[]: %w", err)
	}
	if elem.op >= opArray {
		return fmt.Errorf("[]: an element that is an array, a map or a union needs a message around it")
	}
	n.elem = &elem
	if elem.op == opScalar && elem.align <= 1 {
		n.elemSize = int(elem.scalar.width)
	}
	return nil
}

// mapEntry returns the struct of key and value that a map is an array of.
func mapEntry(t *model.Type, l *payload.Layout) (*model.Type, *payload.Layout) {
	entry := &model.Struct{Members: []*model.Member{
		{Name: "key", Type: t.Key, Number: 1},
		{Name: "value", Type: t.Elem, Number: 2},
	}}
	layout := &payload.Layout{Kind: payload.Struct, Members: []payload.Member{
		{Name: "key", Layout: l.Key},
		{Name: "value", Layout: l.Elem},
	}}
	return &model.Type{Kind: model.StructKind, Struct: entry, Proto: model.ProtoMessage}, layout
}

func (c compiler) setUnion(n *node, t *model.Type, l *payload.Layout) error {
	n.op = opUnion
	n.typeWidth, n.typeFirst = l.Width, l.TypeFirst
	for i, m := range t.Struct.Members {
		f, err := c.field(m, l.Members[i])
		if err == nil && f.op >= opArray {
			err = fmt.Errorf("an alternative that is an array, a map or a union needs a message around it")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		n.alternatives = append(n.alternatives, f)
	}
	return nil
}

// least guesses how many bytes the struct takes in protobuf.
func (p *program) least() int {
	n := 0
	for i := range p.fields {
		n += 1 + int(p.fields[i].scalar.width) + p.fields[i].least
	}
	return n
}
