// Package opaque is the interface under which a SOME/IP service instance is
// bridged that no interface describes: carisma.v1.Opaque, with its messages as
// protobuf wire bytes, and the names of such instances.
package opaque

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
)

// Name is the full name of the interface.
const Name = "carisma.v1.Opaque"

// The elements of the interface. Watch takes a request, so it is watched through
// a bridge.Subscribable.
var (
	Describe = &model.Method{Name: "Describe", RPC: "Describe", In: message("DescribeRequest"), Out: message("DescribeResponse"), Idempotent: true}
	Call     = &model.Method{Name: "Call", RPC: "Call", In: message("CallRequest"), Out: message("CallResponse")}
	Send     = &model.Method{Name: "Send", RPC: "Send", In: message("SendRequest"), Out: message("SendResponse")}
	Watch    = &model.Event{Name: "Watch", RPC: "Watch", Args: message("WatchResponse"), MetaNumber: 1000}

	// Interface is the interface. It has no SOME/IP deployment: each instance has
	// ids of its own.
	Interface = &model.Interface{
		Package: "carisma", Name: "Opaque", Version: model.Version{Major: 1},
		Methods: []*model.Method{Describe, Call, Send}, Events: []*model.Event{Watch},
	}
)

func message(name string) *model.Struct {
	return &model.Struct{Name: "carisma.v1.Opaque" + name}
}

// Descriptors returns the serialised google.protobuf.FileDescriptorSet of the
// interface. Nobody may change it.
var Descriptors = sync.OnceValue(func() []byte {
	set := &descriptorpb.FileDescriptorSet{}
	add(set, carismav1.File_carisma_v1_opaque_proto, map[string]bool{})
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		return nil // generated descriptors always encode
	}
	return b
})

// add adds a file after its imports.
func add(set *descriptorpb.FileDescriptorSet, f protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		add(set, f.Imports().Get(i).FileDescriptor, seen)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
}

// InstanceName returns the name of an instance: 6001-0001-v1 for instance 0x0001
// of service 0x6001, major version 1. All of it stays as it is in a mesh name.
func InstanceName(key someip.InstanceKey) string {
	return fmt.Sprintf("%04x-%04x-v%d", key.Service, key.Instance, key.Major)
}

// ParseInstanceName returns the instance with a name.
func ParseInstanceName(name string) (key someip.InstanceKey, ok bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return key, false
	}
	service, err1 := strconv.ParseUint(parts[0], 16, 16)
	instance, err2 := strconv.ParseUint(parts[1], 16, 16)
	major, err3 := strconv.ParseUint(strings.TrimPrefix(parts[2], "v"), 10, 8)
	key = someip.InstanceKey{Service: uint16(service), Instance: uint16(instance), Major: uint8(major)}
	return key, err1 == nil && err2 == nil && err3 == nil && InstanceName(key) == name
}
