package grpcadapter

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

// reflector serves reflection for what is in the mesh while it is asked.
type reflector struct{ server *Server }

func (r reflector) ServerReflectionInfo(stream reflectionv1.ServerReflection_ServerReflectionInfoServer) error {
	v, err := r.view(stream)
	if err != nil {
		return err
	}
	return reflection.NewServerV1(v).ServerReflectionInfo(stream)
}

type reflectorAlpha struct{ reflector }

func (r reflectorAlpha) ServerReflectionInfo(stream reflectionv1alpha.ServerReflection_ServerReflectionInfoServer) error {
	v, err := r.view(stream)
	if err != nil {
		return err
	}
	return reflection.NewServer(v).ServerReflectionInfo(stream)
}

// view returns what a stream may see: the instance that its authority names, or
// the whole mesh.
func (r reflector) view(stream grpc.ServerStream) (reflection.ServerOptions, error) {
	d := r.server.current.Load()
	name := meshName(header(stream.Context(), ":authority"))
	if t := d.targets[name]; t != nil {
		if t.svc == nil { // the instance itself answers, wherever it is
			return reflection.ServerOptions{}, t.unavailable()
		}
		v := view{server: r.server, only: name}
		return v.options(), nil
	}
	if isMeshName(name) {
		return reflection.ServerOptions{}, status.New(codes.NotFound, "no instance %s in the mesh", name)
	}
	return view{server: r.server}.options(), nil
}

// view resolves descriptors in the sets of the instances that are up. It looks
// at the present directory each time, so that a long stream sees what comes.
type view struct {
	server *Server
	only   string // mesh name, empty for the whole mesh
}

func (v view) options() reflection.ServerOptions {
	return reflection.ServerOptions{Services: v, DescriptorResolver: v, ExtensionResolver: v}
}

// interfaces returns the descriptor set of each interface.
func (v view) interfaces() map[string][]byte {
	d := v.server.current.Load()
	if v.only != "" {
		t := d.targets[v.only]
		if t == nil || !t.up {
			return nil
		}
		return map[string][]byte{t.family.name: t.descriptors}
	}
	all := make(map[string][]byte, len(d.families))
	for name, f := range d.families {
		if f.first.up {
			all[name] = f.first.descriptors
		}
	}
	return all
}

// GetServiceInfo lists the interfaces and the gateway's own services.
func (v view) GetServiceInfo() map[string]grpc.ServiceInfo {
	info := v.server.grpc.GetServiceInfo()
	for name := range v.interfaces() {
		info[name] = grpc.ServiceInfo{}
	}
	return info
}

// sets returns the parsed descriptor sets, in the order of the interfaces; the
// one with the gateway's own services comes last.
func (v view) sets() []*descriptorSet {
	all := v.interfaces()
	sets := make([]*descriptorSet, 0, len(all)+1)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(all[name]) > 0 {
			set, fresh := v.server.sets.get(all[name], 2*len(all))
			if fresh && set.err != nil {
				v.server.log.Warn("descriptors refused", "interface", name, "error", set.err)
			}
			sets = append(sets, set)
		}
	}
	return append(sets, ownServices())
}

// ownServices is the set of the services that the gateway itself implements,
// and of what it puts into the details of a status.
var ownServices = sync.OnceValue(func() *descriptorSet {
	set := &descriptorSet{files: &protoregistry.Files{}, extensions: &protoregistry.Types{}}
	for _, f := range []protoreflect.FileDescriptor{
		healthv1.File_grpc_health_v1_health_proto,
		reflectionv1.File_grpc_reflection_v1_reflection_proto,
		reflectionv1alpha.File_grpc_reflection_v1alpha_reflection_proto,
		timestamppb.File_google_protobuf_timestamp_proto,
		carismav1.File_carisma_v1_error_proto,
		carismav1.File_carisma_v1_catalog_proto,
	} {
		set.err = errors.Join(set.err, set.files.RegisterFile(f))
	}
	return set
})

// first returns the first answer that a set has.
func first[T any](v view, find func(*descriptorSet) (T, error)) (found T, err error) {
	err = protoregistry.NotFound
	for _, set := range v.sets() {
		if found, err = find(set); err == nil {
			return found, nil
		}
	}
	return found, err
}

func (v view) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	return first(v, func(s *descriptorSet) (protoreflect.FileDescriptor, error) { return s.files.FindFileByPath(path) })
}

func (v view) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return first(v, func(s *descriptorSet) (protoreflect.Descriptor, error) { return s.files.FindDescriptorByName(name) })
}

func (v view) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return first(v, func(s *descriptorSet) (protoreflect.ExtensionType, error) {
		return s.extensions.FindExtensionByName(name)
	})
}

func (v view) FindExtensionByNumber(message protoreflect.FullName, number protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	return first(v, func(s *descriptorSet) (protoreflect.ExtensionType, error) {
		return s.extensions.FindExtensionByNumber(message, number)
	})
}

func (v view) RangeExtensionsByMessage(message protoreflect.FullName, f func(protoreflect.ExtensionType) bool) {
	seen := map[protoreflect.FieldNumber]bool{}
	for _, set := range v.sets() {
		set.extensions.RangeExtensionsByMessage(message, func(x protoreflect.ExtensionType) bool {
			if n := x.TypeDescriptor().Number(); !seen[n] {
				seen[n] = true
				return f(x)
			}
			return true
		})
	}
}
