package transcode_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
)

// fill gives a message random values that fit its deployment.
func fill(rnd *rand.Rand, s *model.Struct, m protoreflect.Message) {
	for _, member := range s.Members {
		if member.Optional && rnd.IntN(2) == 0 {
			continue
		}
		fillMember(rnd, member, m)
	}
}

func fillMember(rnd *rand.Rand, member *model.Member, m protoreflect.Message) {
	t := member.Type
	if t.Kind == model.UnionKind {
		if i := rnd.IntN(len(t.Struct.Members) + 1); i > 0 {
			fillMember(rnd, t.Struct.Members[i-1], m)
		}
		return
	}
	f := m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(member.Number))
	switch t.Kind {
	case model.ArrayKind:
		list := m.Mutable(f).List()
		n := rnd.IntN(6)
		if t.SOMEIP.Count > 0 {
			n = int(t.SOMEIP.Count)
		}
		for range n {
			list.Append(value(rnd, t.Elem, list.NewElement()))
		}
	case model.MapKind:
		entries := m.Mutable(f).Map()
		for range rnd.IntN(4) {
			key := value(rnd, t.Key, protoreflect.Value{}).MapKey()
			entries.Set(key, value(rnd, t.Elem, entries.NewValue()))
		}
	case model.StructKind:
		fill(rnd, t.Struct, m.Mutable(f).Message())
	default:
		m.Set(f, value(rnd, t, protoreflect.Value{}))
	}
}

// value returns a random value; that of a message is empty, which it fills.
func value(rnd *rand.Rand, t *model.Type, empty protoreflect.Value) protoreflect.Value {
	switch t.Kind {
	case model.StructKind:
		fill(rnd, t.Struct, empty.Message())
		return empty
	case model.Bool:
		return protoreflect.ValueOfBool(rnd.IntN(2) == 0)
	case model.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(t.Enum.Literals[rnd.IntN(len(t.Enum.Literals))].Value))
	case model.String:
		return protoreflect.ValueOfString(text(rnd, int(max(t.SOMEIP.FixedLength, t.SOMEIP.Max))))
	case model.Bytes:
		b := make([]byte, rnd.IntN(200))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return protoreflect.ValueOfBytes(b)
	case model.Float32:
		return protoreflect.ValueOfFloat32([]float32{0, 1.5, -2, float32(math.Copysign(0, -1)), float32(math.Inf(1)), rnd.Float32()}[rnd.IntN(6)])
	case model.Float64:
		return protoreflect.ValueOfFloat64([]float64{0, 1.5, -2, math.Copysign(0, -1), math.Inf(-1), rnd.Float64()}[rnd.IntN(6)])
	default:
		return number(t, []uint64{0, 1, math.MaxUint64, 1 << 63, 127, 128, rnd.Uint64()}[rnd.IntN(7)])
	}
}

// number narrows a value to the width that the type has on SOME/IP.
func number(t *model.Type, v uint64) protoreflect.Value {
	shift := 64 - 8*int(t.SOMEIP.Width)
	signed := t.Kind >= model.Int8 && t.Kind <= model.Int64
	if signed {
		v = uint64(int64(v<<shift) >> shift)
	} else {
		v = v << shift >> shift
	}
	switch t.Proto {
	case model.ProtoInt32, model.ProtoSint32, model.ProtoSfixed32:
		return protoreflect.ValueOfInt32(int32(v))
	case model.ProtoInt64, model.ProtoSint64, model.ProtoSfixed64:
		return protoreflect.ValueOfInt64(int64(v))
	case model.ProtoUint32, model.ProtoFixed32:
		return protoreflect.ValueOfUint32(uint32(v))
	default:
		return protoreflect.ValueOfUint64(v)
	}
}

func text(rnd *rand.Rand, limit int) string {
	alphabet := []string{"a", "Z", "µ", "€", "𝄞", " ", "\n", "\u007f"}
	n := rnd.IntN(40)
	if limit > 0 {
		n = rnd.IntN((limit-4)/4 + 1) // at most 4 bytes each, beside mark and terminator
	}
	s := ""
	for range n {
		s += alphabet[rnd.IntN(len(alphabet))]
	}
	return s
}

// scramble returns another encoding of the same message: fields in any order,
// packed ones in pieces or unpacked, messages in two parts, scalars after older
// values, and fields that the interface does not know.
func scramble(t *testing.T, rnd *rand.Rand, s *model.Struct, wire []byte) []byte {
	t.Helper()
	members := map[protowire.Number]*model.Member{}
	for _, m := range s.Members {
		members[protowire.Number(m.Number)] = m
		if m.Type.Kind == model.UnionKind {
			for _, a := range m.Type.Struct.Members {
				members[protowire.Number(a.Number)] = a
			}
		}
	}
	type part struct {
		number protowire.Number
		bytes  []byte
	}
	var parts []part
	for len(wire) > 0 {
		number, typ, n := protowire.ConsumeTag(wire)
		size := protowire.ConsumeFieldValue(number, typ, wire[n:])
		if size < 0 {
			t.Fatal(protowire.ParseError(size))
		}
		for _, b := range again(t, rnd, members[number], number, wire[:n+size], wire[n:n+size]) {
			parts = append(parts, part{number, b})
		}
		wire = wire[n+size:]
	}
	for i := range 3 {
		unknown := protowire.AppendTag(nil, protowire.Number(1001+i), protowire.BytesType)
		parts = append(parts, part{protowire.Number(1000 + i), protowire.AppendBytes(unknown, []byte{1, 2})})
	}
	group := protowire.AppendGroup(protowire.AppendTag(nil, 2000, protowire.StartGroupType), 2000, []byte{0x08, 1})
	parts = append(parts, part{2000, group})

	// Shuffle the numbers, keep the order within each.
	numbers := make([]protowire.Number, len(parts))
	queues := map[protowire.Number][][]byte{}
	for i, p := range parts {
		numbers[i] = p.number
		queues[p.number] = append(queues[p.number], p.bytes)
	}
	rnd.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	var out []byte
	for _, n := range numbers {
		out = append(out, queues[n][0]...)
		queues[n] = queues[n][1:]
	}
	return out
}

// again returns parts that together mean the same as a field.
func again(t *testing.T, rnd *rand.Rand, m *model.Member, number protowire.Number, field, value []byte) [][]byte {
	t.Helper()
	tagged := func(content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	switch {
	case m == nil:
		return [][]byte{field}
	case m.Packed:
		content, _ := protowire.ConsumeBytes(value)
		return unpack(rnd, m.Type.Elem, number, content, tagged)
	case m.Type.Kind == model.StructKind:
		content, _ := protowire.ConsumeBytes(value)
		content = scramble(t, rnd, m.Type.Struct, content)
		_, _, n := protowire.ConsumeField(content)
		return [][]byte{tagged(content[:n]), tagged(content[n:])}
	case m.Type.Kind == model.ArrayKind && m.Type.Elem.Kind == model.StructKind:
		content, _ := protowire.ConsumeBytes(value)
		return [][]byte{tagged(scramble(t, rnd, m.Type.Elem.Struct, content))}
	case m.Type.Kind == model.ArrayKind || m.Type.Kind == model.MapKind:
		return [][]byte{field}
	}
	// The last value of a scalar counts; one of another wire type is unknown.
	other := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 1)
	if m.Type.Kind == model.String || m.Type.Kind == model.Bytes {
		return [][]byte{tagged([]byte("older")), other, field}
	}
	return [][]byte{slices.Clone(field), field, tagged([]byte("unknown"))}
}

func unpack(rnd *rand.Rand, elem *model.Type, number protowire.Number, content []byte, tagged func([]byte) []byte) [][]byte {
	var typ protowire.Type
	switch elem.Proto {
	case model.ProtoFixed32, model.ProtoSfixed32, model.ProtoFloat:
		typ = protowire.Fixed32Type
	case model.ProtoFixed64, model.ProtoSfixed64, model.ProtoDouble:
		typ = protowire.Fixed64Type
	default:
		typ = protowire.VarintType
	}
	var parts [][]byte
	for len(content) > 0 {
		n := protowire.ConsumeFieldValue(number, typ, content)
		if rnd.IntN(2) == 0 {
			parts = append(parts, append(protowire.AppendTag(nil, number, typ), content[:n]...))
		} else {
			parts = append(parts, tagged(content[:n]), tagged(nil))
		}
		content = content[n:]
	}
	return parts
}
