package proto

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"

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
			s.report(r, err)
			return nil
		}, nil),
	}
	linked, err := compiler.Compile(context.Background(), s.order...)
	if placed, ok := errors.AsType[reporter.ErrorWithPos](err); ok {
		s.report(r, placed) // an import that is not found does not pass the reporter
	}
	if mistakes := r.err(); mistakes != nil {
		return nil, mistakes
	}
	if err != nil {
		return nil, &Error{Message: "cannot compile: " + err.Error(), Err: err}
	}
	return normalise(collect(linked))
}

var definedAt = regexp.MustCompile(`^(.* already defined at )(.+):(\d+):(\d+)$`)

// report takes over what protocompile says.
func (s *sources) report(r *reports, err reporter.ErrorWithPos) {
	at := err.GetPosition()
	message := err.Unwrap().Error()
	allowed := optionHint(message)
	if errors.Is(err, fs.ErrNotExist) {
		message = strings.TrimSuffix(message, ": "+fs.ErrNotExist.Error())
		allowed = "the path of a file below one of the import roots"
	}
	pos := model.Position{File: s.shown(at.Filename), Line: at.Line, Column: at.Col}
	if m := definedAt.FindStringSubmatch(message); m != nil {
		other := model.Position{File: s.shown(m[2])}
		other.Line, _ = strconv.Atoi(m[3])
		other.Column, _ = strconv.Atoi(m[4])
		// Files are linked at the same time: which is first is chance.
		if comparePositions(other, pos) > 0 {
			other, pos = pos, other
		}
		message, allowed = m[1]+other.String(), "each name once"
	}
	r.add(pos, allowed, "%s", message)
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
	given := map[string]bool{}
	for _, f := range fds.GetFile() {
		given[f.GetName()] = true
	}
	have := maps.Clone(given)
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
			if !given[f.GetName()] {
				all.File = append(all.File, f)
			}
		}
	}
	all.File = append(all.File, fds.GetFile()...)
	return normalise(all)
}
