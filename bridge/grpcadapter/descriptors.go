package grpcadapter

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// descriptorSet is a parsed descriptor set, empty where err is set.
type descriptorSet struct {
	files      *protoregistry.Files
	extensions *protoregistry.Types
	err        error
}

// descriptorCache keeps parsed descriptor sets by their content. Nothing is
// parsed before a client asks for reflection.
type descriptorCache struct {
	mu   sync.Mutex
	sets map[string]*descriptorSet
}

// get returns a parsed set and whether it was parsed now. At most limit sets
// are kept.
func (c *descriptorCache) get(raw []byte, limit int) (set *descriptorSet, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set = c.sets[string(raw)]; set != nil {
		return set, false
	}
	if c.sets == nil || len(c.sets) >= limit {
		c.sets = map[string]*descriptorSet{}
	}
	set = parseDescriptors(raw)
	c.sets[string(raw)] = set
	return set, true
}

func parseDescriptors(raw []byte) *descriptorSet {
	set := &descriptorSet{files: &protoregistry.Files{}, extensions: &protoregistry.Types{}}
	fds := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(raw, fds); err != nil {
		set.err = fmt.Errorf("grpcadapter: descriptor set: %w", err)
		return set
	}
	addGlobalImports(fds)
	files, err := protodesc.NewFiles(fds)
	if err != nil {
		set.err = fmt.Errorf("grpcadapter: descriptor set: %w", err)
		return set
	}
	set.files = files
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		set.addExtensions(f.Extensions(), f.Messages())
		return true
	})
	return set
}

// addGlobalImports adds the imports that a set may leave out: the files of
// carisma and google/protobuf.
func addGlobalImports(fds *descriptorpb.FileDescriptorSet) {
	have := map[string]bool{}
	for _, f := range fds.GetFile() {
		have[f.GetName()] = true
	}
	for i := 0; i < len(fds.GetFile()); i++ {
		for _, dep := range fds.GetFile()[i].GetDependency() {
			if have[dep] {
				continue
			}
			have[dep] = true
			if f, err := protoregistry.GlobalFiles.FindFileByPath(dep); err == nil {
				fds.File = append(fds.File, protodesc.ToFileDescriptorProto(f))
			}
		}
	}
}

func (s *descriptorSet) addExtensions(exts protoreflect.ExtensionDescriptors, messages protoreflect.MessageDescriptors) {
	for i := range exts.Len() {
		// Fails only for a second one of a name, which NewFiles refused.
		_ = s.extensions.RegisterExtension(dynamicpb.NewExtensionType(exts.Get(i)))
	}
	for i := range messages.Len() {
		s.addExtensions(messages.Get(i).Extensions(), messages.Get(i).Messages())
	}
}
