package proto

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

// fieldReader is a field, and the rpcs that access it in the order of the file.
type fieldReader struct {
	field  *model.Field
	values []fieldValue
}

// fieldValue is what an rpc of a field takes, returns or sends.
type fieldValue struct {
	rpc  protoreflect.MethodDescriptor
	verb string
	args *model.Struct
}

// readFieldRPC reads a getter, setter or notifier.
func (r *interfaceReader) readFieldRPC(m protoreflect.MethodDescriptor, what *optionsv1.Rpc) {
	name := what.GetField()
	at := r.rpcAt(m, rpcExtension, 2)
	verb := ""
	for _, v := range []string{"Get", "Set", "Watch"} {
		if rpc := string(m.Name()); rpc == v+name || rpc == v+name+"Field" {
			verb = v
		}
	}
	if verb == "" || verb == "Watch" != m.IsStreamingServer() {
		allowed := "Get" + name + " or Set" + name
		if m.IsStreamingServer() {
			allowed = "Watch" + name
		}
		r.add(at, allowed+", also with the suffix Field", "%s is not how the field %s is accessed by %s", m.Name(), strconv.Quote(name), shape(m))
		return
	}
	if verb != "Set" && m.Input().Fields().Len() > 0 {
		r.add(r.files.pos(m), "an empty request message", "%s has arguments", m.Name())
	}
	f := r.fields[name]
	if f == nil {
		f = &fieldReader{field: &model.Field{Pos: r.files.pos(m), Name: name}}
		r.fields[name] = f
		r.iface.Fields = append(r.iface.Fields, f.field)
	}
	twice := false
	switch verb {
	case "Get":
		twice = f.field.Getter != nil
		f.field.Getter = r.method(m, name, what)
		f.carries(m, "returns", f.field.Getter.Out)
	case "Set":
		twice = f.field.Setter != nil
		f.field.Setter = r.method(m, name, what)
		f.carries(m, "takes", f.field.Setter.In)
		f.carries(m, "returns", f.field.Setter.Out)
	case "Watch":
		twice = f.field.Notifier != nil
		f.field.Notifier = r.event(m, name)
		f.field.Notifier.Field = f.field
		f.carries(m, "sends", f.field.Notifier.Args)
	}
	if twice {
		r.add(at, "one rpc for each kind of access", "the field %s has a second %s", name, verb+name)
	}
}

func shape(m protoreflect.MethodDescriptor) string {
	if m.IsStreamingServer() {
		return "a stream"
	}
	return "a unary rpc"
}

func (f *fieldReader) carries(m protoreflect.MethodDescriptor, verb string, args *model.Struct) {
	f.values = append(f.values, fieldValue{m, verb, args})
}

// checkFields requires that all rpcs of a field carry the same value.
func (r *interfaceReader) checkFields() {
	for _, name := range slices.Sorted(maps.Keys(r.fields)) {
		values := r.fields[name].values
		for _, v := range values[min(1, len(values)):] {
			if first := values[0]; !(comparison{}).sameValue(first.args, v.args) {
				r.add(r.files.pos(v.rpc), "members with the same names, numbers, types and widths",
					"%s %s %s, but %s %s %s", v.rpc.Name(), v.verb, write(v.args), first.rpc.Name(), first.verb, write(first.args))
			}
		}
	}
}

// comparison remembers pairs of structs that are compared or were the same.
type comparison map[[2]*model.Struct]bool

// sameValue compares argument lists by what they carry, not by name.
func (c comparison) sameValue(a, b *model.Struct) bool {
	pair := [2]*model.Struct{a, b}
	if a == b || c[pair] {
		return true
	}
	c[pair] = true
	return a.SOMEIP == b.SOMEIP && slices.EqualFunc(a.Members, b.Members, func(x, y *model.Member) bool {
		return x.Name == y.Name && x.Number == y.Number && x.Optional == y.Optional && c.sameType(x.Type, y.Type)
	})
}

func (c comparison) sameType(a, b *model.Type) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.Kind != b.Kind || a.Proto != b.Proto || a.SOMEIP != b.SOMEIP || a.Enum != b.Enum:
		return false
	case !c.sameType(a.Elem, b.Elem) || !c.sameType(a.Key, b.Key):
		return false
	case a.Struct == nil || b.Struct == nil:
		return a.Struct == b.Struct
	}
	return c.sameValue(a.Struct, b.Struct)
}

// write shows an argument list in a message.
func write(s *model.Struct) string {
	parts := make([]string, len(s.Members))
	for i, m := range s.Members {
		parts[i] = typeWord(m.Type) + " " + m.Name
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func typeWord(t *model.Type) string {
	switch t.Kind {
	case model.EnumKind:
		return t.Enum.Name
	case model.StructKind:
		return t.Struct.Name
	case model.UnionKind:
		return "oneof"
	case model.ArrayKind:
		return "repeated " + typeWord(t.Elem)
	case model.MapKind:
		return "map<" + typeWord(t.Key) + ", " + typeWord(t.Elem) + ">"
	default:
		return kindWords[t.Kind]
	}
}

var kindWords = map[model.Kind]string{
	model.Bool: "bool", model.Int8: "int8", model.Int16: "int16", model.Int32: "int32", model.Int64: "int64",
	model.Uint8: "uint8", model.Uint16: "uint16", model.Uint32: "uint32", model.Uint64: "uint64",
	model.Float32: "float", model.Float64: "double", model.String: "string", model.Bytes: "bytes",
}
