package proto

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
)

// files are the linked descriptors of a set.
type files struct {
	set      *descriptorpb.FileDescriptorSet
	registry *protoregistry.Files
	shown    func(importPath string) string
}

func newFiles(fds *descriptorpb.FileDescriptorSet, shown func(string) string) (*files, error) {
	if err := checkDoubles(fds, shown); err != nil {
		return nil, err
	}
	registry, err := protodesc.NewFiles(fds)
	if err != nil {
		return nil, &Error{Message: "the descriptor set is not valid: " + err.Error(), Err: err}
	}
	return &files{fds, registry, shown}, nil
}

// checkDoubles finds interfaces that two files have, to name both.
func checkDoubles(fds *descriptorpb.FileDescriptorSet, shown func(string) string) error {
	r := &reports{}
	seen := map[string]string{}
	for _, file := range fds.GetFile() {
		for _, s := range file.GetService() {
			name := file.GetPackage() + "." + s.GetName()
			if before, ok := seen[name]; ok {
				r.add(model.Position{File: shown(file.GetName())}, "one source of each interface", "the interface %s is also in %s", name, shown(before))
			}
			seen[name] = file.GetName()
		}
	}
	return r.err()
}

// interfaceFiles returns the files that are not part of the program, in the
// order of the set.
func (f *files) interfaceFiles() []protoreflect.FileDescriptor {
	var list []protoreflect.FileDescriptor
	for _, file := range f.set.GetFile() {
		if builtin(file.GetName()) {
			continue
		}
		if d, err := f.registry.FindFileByPath(file.GetName()); err == nil {
			list = append(list, d)
		}
	}
	return list
}

func (f *files) closure(interfaceFullName string) []byte {
	d, err := f.registry.FindDescriptorByName(protoreflect.FullName(interfaceFullName))
	if err != nil {
		return nil
	}
	if _, ok := d.(protoreflect.ServiceDescriptor); !ok {
		return nil
	}
	byName := map[string]*descriptorpb.FileDescriptorProto{}
	for _, file := range f.set.GetFile() {
		byName[file.GetName()] = file
	}
	out := &descriptorpb.FileDescriptorSet{}
	var add func(name string)
	add = func(name string) {
		file := byName[name]
		if file == nil {
			return
		}
		delete(byName, name)
		for _, imported := range file.GetDependency() {
			add(imported)
		}
		bare := proto.CloneOf(file)
		bare.SourceCodeInfo = nil
		out.File = append(out.File, bare)
	}
	add(d.ParentFile().Path())
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(out)
	if err != nil {
		return nil // it was unmarshalled before
	}
	return data
}

// Numbers of the options member in the messages of descriptor.proto, and of
// members that have positions of their own.
const (
	optionsOfMessage = 7
	optionsOfField   = 8
	optionsOfEnum    = 3
	optionsOfService = 3
	optionsOfMethod  = 4
)

// pos returns the place of a declaration, or of what lies at a path below it: the
// longest part of the path that the source info has.
func (f *files) pos(d protoreflect.Descriptor, below ...int32) model.Position {
	p := model.Position{File: f.shown(d.ParentFile().Path())}
	all := d.ParentFile().SourceLocations()
	at := all.ByDescriptor(d)
	if at.Path == nil {
		return p
	}
	base := append(protoreflect.SourcePath(nil), at.Path...)
	for n := len(below); n > 0; n-- {
		if found := all.ByPath(append(base, below[:n]...)); found.Path != nil {
			at = found
			break
		}
	}
	p.Line, p.Column = at.StartLine+1, at.StartColumn+1
	return p
}

// packagePos returns the place of the package statement.
func (f *files) packagePos(file protoreflect.FileDescriptor) model.Position {
	p := model.Position{File: f.shown(file.Path())}
	if at := file.SourceLocations().ByPath(protoreflect.SourcePath{2}); at.Path != nil {
		p.Line, p.Column = at.StartLine+1, at.StartColumn+1
	}
	return p
}
