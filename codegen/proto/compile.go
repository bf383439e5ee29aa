package proto

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
)

// compile parses and links the sources into a complete descriptor set with
// source info.
func (s *sources) compile() (*descriptorpb.FileDescriptorSet, error) {
	r := &reports{}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(func(p string) (protocompile.SearchResult, error) {
			source, err := s.open(p)
			return protocompile.SearchResult{Source: source}, err
		})),
		SourceInfoMode: protocompile.SourceInfoStandard | protocompile.SourceInfoExtraOptionLocations,
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			at := err.GetPosition()
			r.add(model.Position{File: s.shown(at.Filename), Line: at.Line, Column: at.Col}, "", "%s", explain(err.Unwrap()))
			return nil
		}, nil),
	}
	linked, err := compiler.Compile(context.Background(), s.order...)
	if mistakes := r.err(); mistakes != nil {
		return nil, mistakes
	}
	if err != nil {
		return nil, &Error{Message: "cannot compile: " + err.Error(), Err: err}
	}
	return normalise(collect(linked))
}

// explain puts what protocompile says about a missing import into better words.
func explain(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the imported file is in none of the import roots"
	}
	return err.Error()
}

// collect returns the files and all they import, imports first.
func collect(linked linker.Files) *descriptorpb.FileDescriptorSet {
	fds := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		fds.File = append(fds.File, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range linked {
		add(f)
	}
	return fds
}

// normalise makes options of carisma/options/v1 the Go types that read them.
func normalise(fds *descriptorpb.FileDescriptorSet) (*descriptorpb.FileDescriptorSet, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(fds)
	if err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	out := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	return out, nil
}

// addBuiltins completes a descriptor set with the files of the program that it
// imports and does not have.
func addBuiltins(fds *descriptorpb.FileDescriptorSet) (*descriptorpb.FileDescriptorSet, error) {
	have := map[string]bool{}
	for _, f := range fds.GetFile() {
		have[f.GetName()] = true
	}
	missing := &sources{}
	for _, f := range fds.GetFile() {
		for _, imported := range f.GetDependency() {
			if !have[imported] && builtin(imported) {
				have[imported] = true
				missing.order = append(missing.order, imported)
			}
		}
	}
	all := &descriptorpb.FileDescriptorSet{}
	if len(missing.order) > 0 {
		added, err := missing.compile()
		if err != nil {
			return nil, err
		}
		for _, f := range added.GetFile() {
			f.SourceCodeInfo = nil
			if !contains(fds, f.GetName()) {
				all.File = append(all.File, f)
			}
		}
	}
	all.File = append(all.File, fds.GetFile()...)
	return normalise(all)
}

func contains(fds *descriptorpb.FileDescriptorSet, name string) bool {
	for _, f := range fds.GetFile() {
		if f.GetName() == name {
			return true
		}
	}
	return false
}
