package proto

import (
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

const (
	rpcExtension       = 53402
	someipRPCExtension = 53403
)

// rpcAt is the place of an rpc's option.
func (r *interfaceReader) rpcAt(m protoreflect.MethodDescriptor, extension int32, below ...int32) model.Position {
	return r.files.pos(m, append([]int32{optionsOfMethod, extension}, below...)...)
}

// readRPC decides what an rpc is.
func (r *interfaceReader) readRPC(m protoreflect.MethodDescriptor) {
	what, _ := proto.GetExtension(m.Options(), optionsv1.E_Rpc).(*optionsv1.Rpc)
	if !r.checkRPC(m, what) {
		return
	}
	switch {
	case m.IsStreamingClient() && m.IsStreamingServer():
		r.leaveOut(m, "a stream in both directions")
	case m.IsStreamingClient():
		r.leaveOut(m, "a stream from the client")
	case what.GetField() != "":
		r.readFieldRPC(m, what)
	case !m.IsStreamingServer():
		r.iface.Methods = append(r.iface.Methods, r.method(m, string(m.Name()), what))
	case m.Input().Fields().Len() == 0 || what.GetEvent():
		name, ok := strings.CutPrefix(string(m.Name()), "Watch")
		if !ok || name == "" {
			name = string(m.Name())
		}
		r.iface.Events = append(r.iface.Events, r.event(m, name))
	default:
		r.leaveOut(m, "a stream with arguments")
	}
}

// checkRPC reports options that contradict the shape of the rpc.
func (r *interfaceReader) checkRPC(m protoreflect.MethodDescriptor, what *optionsv1.Rpc) bool {
	before := len(r.list)
	stream := m.IsStreamingClient() || m.IsStreamingServer()
	if what.GetFireAndForget() {
		switch at := r.rpcAt(m, rpcExtension, 1); {
		case stream:
			r.add(at, "fire_and_forget on a unary rpc", "%s is a stream", m.Name())
		case what.GetField() != "":
			r.add(at, "fire_and_forget on a method", "%s belongs to a field, whose access is always answered", m.Name())
		case m.Output().Fields().Len() > 0:
			r.add(at, "an empty response message", "%s is not answered, but %s has members", m.Name(), m.Output().FullName())
		}
	}
	if what.GetEvent() && (!m.IsStreamingServer() || m.IsStreamingClient()) {
		r.add(r.rpcAt(m, rpcExtension, 4), "event on a stream from the server", "%s is not such a stream", m.Name())
	}
	if what.GetField() != "" && m.IsStreamingClient() {
		r.add(r.rpcAt(m, rpcExtension, 2), "a unary rpc or a stream from the server", "%s is a stream from the client", m.Name())
	}
	return len(r.list) == before
}

func (r *interfaceReader) leaveOut(m protoreflect.MethodDescriptor, reason string) {
	if proto.HasExtension(m.Options(), optionsv1.E_SomeipRpc) {
		r.add(r.rpcAt(m, someipRPCExtension), "someip_rpc on unary rpcs and events", "%s is %s, which SOME/IP cannot carry", m.Name(), reason)
	}
	r.iface.Unexposed = append(r.iface.Unexposed, model.Unexposed{RPC: string(m.Name()), Reason: reason})
}

func (r *interfaceReader) method(m protoreflect.MethodDescriptor, name string, what *optionsv1.Rpc) *model.Method {
	out := &model.Method{
		Pos: r.files.pos(m), Name: name, RPC: string(m.Name()),
		FireAndForget: what.GetFireAndForget(), Idempotent: what.GetIdempotent(),
		SOMEIP: r.element(m, false),
	}
	if o, ok := m.Options().(*descriptorpb.MethodOptions); ok {
		out.Idempotent = out.Idempotent || o.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
	}
	out.In, _ = r.arguments(m.Input(), false)
	out.Out, _ = r.arguments(m.Output(), false)
	if out.SOMEIP != nil {
		r.checkLayout(out.In)
		r.checkLayout(out.Out)
	}
	return out
}

func (r *interfaceReader) event(m protoreflect.MethodDescriptor, name string) *model.Event {
	e := &model.Event{Pos: r.files.pos(m), Name: name, RPC: string(m.Name()), SOMEIP: r.element(m, true)}
	e.Args, e.MetaNumber = r.arguments(m.Output(), true)
	if e.SOMEIP != nil {
		r.checkLayout(e.Args)
	}
	return e
}

// checkLayout requires that SOME/IP can carry an argument list, where no other
// mistake explains it better.
func (r *interfaceReader) checkLayout(s *model.Struct) {
	if len(r.list) > 0 {
		return
	}
	if _, err := s.SOMEIPLayout(); err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		r.add(s.Pos, "", "SOME/IP cannot carry %s: %v", s.Name, err)
	}
}

// element reads the ids of an rpc; nil if it has none.
func (r *interfaceReader) element(m protoreflect.MethodDescriptor, isEvent bool) *model.SOMEIPElement {
	if !proto.HasExtension(m.Options(), optionsv1.E_SomeipRpc) {
		return nil
	}
	o, _ := proto.GetExtension(m.Options(), optionsv1.E_SomeipRpc).(*optionsv1.SomeipRpc)
	if r.options == nil {
		r.add(r.rpcAt(m, someipRPCExtension), "someip_rpc where the service has the option someip", "the interface %s has no SOME/IP service id", r.iface.Name)
		return nil
	}
	id, groups := o.GetId(), o.GetEventgroups()
	switch at := r.rpcAt(m, someipRPCExtension, 1); {
	case isEvent && (id < minEventID || id > maxEventID):
		r.add(at, "0x8001 to 0xfffe", "%s is not the id of an event", hex(id))
	case !isEvent && (id == 0 || id > maxMethodID):
		r.add(at, "0x0001 to 0x7ffe", "%s is not the id of a method", hex(id))
	}
	if !isEvent && len(groups) > 0 {
		r.add(r.rpcAt(m, someipRPCExtension, 3), "eventgroups on events and notifiers", "%s is a method", m.Name())
	}
	if isEvent && len(groups) == 0 {
		r.add(r.rpcAt(m, someipRPCExtension), "at least one eventgroup", "nobody can subscribe to %s, it is in no eventgroup", m.Name())
	}
	e := &model.SOMEIPElement{ID: uint16(id), Reliable: o.GetReliable()}
	for n, g := range groups {
		at := r.rpcAt(m, someipRPCExtension, 3, int32(n))
		switch {
		case g == 0 || g > maxEventgroup:
			r.add(at, "0x0001 to 0xfffe", "%s is not the id of an eventgroup", hex(g))
		case slices.Contains(e.Eventgroups, uint16(g)):
			r.add(at, "each eventgroup once", "%s is given twice", hex(g))
		}
		e.Eventgroups = append(e.Eventgroups, uint16(g))
	}
	r.messages(m, o, e, isEvent)
	return e
}
