package proto

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
	"carisma.dev/gateway/someip/payload"
)

const (
	structExtension = 53406
	enumExtension   = 53405

	eventMeta = "carisma.v1.EventMeta"

	// maxDepth bounds the nesting of types that SOME/IP does not bound.
	maxDepth = 1000
)

// arguments reads a message as the argument list of a method or event. An
// argument list is no struct: a length field before it does not exist. The meta
// member of an event is left out, and its number returned.
func (r *interfaceReader) arguments(m protoreflect.MessageDescriptor, isEvent bool) (s *model.Struct, meta int32) {
	s = &model.Struct{Pos: r.files.pos(m), Name: string(m.FullName())}
	r.open = append(r.open, m.FullName())
	defer func() { r.open = r.open[:len(r.open)-1] }()
	s.Members = r.members(m, func(f protoreflect.FieldDescriptor) bool {
		if !isEvent || f.IsList() || f.Message() == nil || f.Message().FullName() != eventMeta {
			return false
		}
		if meta != 0 {
			r.add(r.files.pos(f), "one member of type "+eventMeta, "%s is the second", f.Name())
		}
		meta = int32(f.Number())
		return true
	})
	return s, meta
}

// members reads the members of a message, those of a oneof as one union.
func (r *interfaceReader) members(m protoreflect.MessageDescriptor, skip func(protoreflect.FieldDescriptor) bool) []*model.Member {
	var list []*model.Member
	unions := map[protoreflect.FullName]bool{}
	dataIDs := map[int32]string{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if skip(f) {
			continue
		}
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			if !unions[o.FullName()] {
				unions[o.FullName()] = true
				list = append(list, r.union(o))
			}
			continue
		}
		member := r.member(f)
		list = append(list, member)
		if id := member.Type.SOMEIP.DataID; id >= 0 {
			if before, ok := dataIDs[id]; ok {
				r.add(r.memberAt(f, 6), "each data id once in a struct", "data id %d is also that of %s", id, before)
			}
			dataIDs[id] = member.Name
		}
	}
	if len(dataIDs) > 0 && len(dataIDs) < len(list) {
		for _, member := range list {
			if member.Type.SOMEIP.DataID < 0 {
				r.add(member.Pos, "a data id for each member of a struct, or for none", "%s has no data id, but others of %s have one", member.Name, m.FullName())
			}
		}
	}
	return list
}

func (r *interfaceReader) member(f protoreflect.FieldDescriptor) *model.Member {
	o, _ := proto.GetExtension(f.Options(), optionsv1.E_SomeipMember).(*optionsv1.SomeipMember)
	member := &model.Member{
		Pos: r.files.pos(f), Name: string(f.Name()), Number: int32(f.Number()), Packed: f.IsPacked(),
		Optional: f.HasOptionalKeyword() || f.HasPresence() && f.Message() == nil && f.ContainingOneof() == nil && f.Cardinality() != protoreflect.Required,
		Type:     r.typeOf(f, o),
	}
	if o != nil && o.DataId != nil {
		if o.GetDataId() > 0xFFF {
			r.add(r.memberAt(f, 6), "0 to 4095", "%d is not a data id", o.GetDataId())
		}
		member.Type.SOMEIP.DataID = int32(o.GetDataId())
	} else if member.Optional && r.options != nil {
		r.add(member.Pos, "optional with a data_id", "SOME/IP cannot leave out %s, it has no data id", f.Name())
	}
	return member
}

// union reads a oneof. The first alternative has type 1, as in CommonAPI; length
// and type field have four bytes each.
func (r *interfaceReader) union(o protoreflect.OneofDescriptor) *model.Member {
	pos := r.files.pos(o)
	s := &model.Struct{Pos: pos, Name: string(o.FullName())}
	for i := range o.Fields().Len() {
		f := o.Fields().Get(i)
		alternative := r.member(f)
		if alternative.Type.SOMEIP.DataID >= 0 {
			r.add(r.memberAt(f, 6), "data_id on members", "%s is an alternative of the union %s", f.Name(), o.Name())
		}
		s.Members = append(s.Members, alternative)
	}
	t := &model.Type{Kind: model.UnionKind, Struct: s, SOMEIP: model.SOMEIPType{
		Width: 4, LengthWidth: 4, LittleEndian: r.lengthOrder(r.bigOrLittle(0)), DataID: -1,
	}}
	return &model.Member{Pos: pos, Name: string(o.Name()), Type: t}
}

// structOf reads a message as a struct type.
func (r *interfaceReader) structOf(m protoreflect.MessageDescriptor, user protoreflect.FieldDescriptor) *model.Struct {
	if slices.Contains(r.open, m.FullName()) && r.options != nil && !r.recursive[m.FullName()] {
		r.recursive[m.FullName()] = true
		path := r.open[slices.Index(r.open, m.FullName()):]
		parts := make([]string, 0, len(path)+1)
		for _, p := range append(slices.Clone(path), m.FullName()) {
			parts = append(parts, string(p.Name()))
		}
		r.add(r.files.pos(user), "types that do not contain themselves", "SOME/IP cannot carry the recursive type %s (%s)", m.FullName(), strings.Join(parts, " > "))
	}
	if s := r.structs[m.FullName()]; s != nil {
		return s
	}
	depth := maxDepth
	if r.options != nil {
		depth = payload.MaxDepth
	}
	if len(r.open) > depth {
		r.add(r.files.pos(user), fmt.Sprintf("at most %d levels", depth), "the structs in structs are too many")
		return &model.Struct{Pos: r.files.pos(m), Name: string(m.FullName())}
	}
	s := &model.Struct{Pos: r.files.pos(m), Name: string(m.FullName())}
	r.structs[m.FullName()] = s
	if o, _ := proto.GetExtension(m.Options(), optionsv1.E_SomeipStruct).(*optionsv1.SomeipStruct); o != nil {
		at := r.files.pos(m, optionsOfMessage, structExtension, 1)
		s.SOMEIP.LengthWidth = r.lengthWidth(at, o.GetLengthWidth(), true)
	}
	r.open = append(r.open, m.FullName())
	s.Members = r.members(m, func(protoreflect.FieldDescriptor) bool { return false })
	r.open = r.open[:len(r.open)-1]
	return s
}

func (r *interfaceReader) enumOf(e protoreflect.EnumDescriptor) *model.Enum {
	if out := r.enums[e.FullName()]; out != nil {
		return out
	}
	out := &model.Enum{Pos: r.files.pos(e), Name: string(e.FullName()), Width: 1}
	r.enums[e.FullName()] = out
	o, _ := proto.GetExtension(e.Options(), optionsv1.E_SomeipEnum).(*optionsv1.SomeipEnum)
	if w := o.GetWidth(); w != 0 {
		out.Width = uint8(w)
		if !isWidth(w) {
			r.add(r.files.pos(e, optionsOfEnum, enumExtension, 1), "1, 2, 4 or 8", "an enum has no width of %d bytes", w)
			out.Width = 8
		}
	}
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		out.Literals = append(out.Literals, model.Literal{Name: string(v.Name()), Value: int64(v.Number())})
	}
	for i, l := range out.Literals {
		if r.options != nil && !out.Holds(l.Value) {
			r.add(r.files.pos(e.Values().Get(i)), "a value that fits, or the option someip_enum with a larger width",
				"%s = %d does not fit the width %d of %s", l.Name, l.Value, out.Width, e.Name())
		}
	}
	return out
}

func isWidth(w uint32) bool { return w == 1 || w == 2 || w == 4 || w == 8 }
