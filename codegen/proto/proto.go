// Package proto reads interfaces from .proto files and from descriptor sets. The
// options of carisma/options/v1 say how SOME/IP carries them.
//
// A service in a package that ends in .v<major> is an interface. Its rpcs are:
//
//	unary                                   method
//	unary with option field, GetF or SetF   getter or setter of the field F
//	server stream with option field, WatchF notifier of the field F
//	server stream with an empty request     event
//	any other stream                        not exposed to legacy protocols
//
// What an option leaves out has the default that options.proto states.
package proto

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
)

// Set holds the interfaces of some files, and the files. It is immutable.
type Set struct {
	// Interfaces are in the order of their full names.
	Interfaces []*model.Interface

	byName   map[string]*model.Interface
	bySOMEIP map[someipKey]*model.Interface
	files    *files
}

type someipKey struct {
	service uint16
	major   uint8
}

// Load reads .proto files and directories. A directory is an import root: all
// .proto files below it are read, and imports are searched there. The import
// root of a single file is the directory that its package statement implies.
// carisma/options/v1, carisma/v1 and google/protobuf need no file.
//
// Its errors are *Error, joined, one for each mistake.
func Load(paths ...string) (*Set, error) {
	src, err := findSources(paths)
	if err != nil {
		return nil, err
	}
	fds, err := src.compile()
	if err != nil {
		return nil, err
	}
	return read(fds, src.shown)
}

// FromDescriptors reads the interfaces of a descriptor set. It gives the model
// that Load gives for the files that the set was made from; positions have line
// and column only if the set has source info, and the import path as file. Files
// of carisma and google/protobuf may be missing in the set.
func FromDescriptors(fds *descriptorpb.FileDescriptorSet) (*Set, error) {
	fds, err := addBuiltins(fds)
	if err != nil {
		return nil, err
	}
	return read(fds, func(importPath string) string { return importPath })
}

// Interface returns the interface with a full name, such as
// "cabin.climate.v1.Climate", or nil.
func (s *Set) Interface(fullName string) *model.Interface { return s.byName[fullName] }

// BySOMEIP returns the interface with a SOME/IP service id and major version, or
// nil. Of several the first in order is returned; codegen/lint reports them.
func (s *Set) BySOMEIP(service uint16, major uint8) *model.Interface {
	return s.bySOMEIP[someipKey{service, major}]
}

// Descriptors returns the serialised FileDescriptorSet of the file that holds an
// interface and of all it imports, imports first, without source info. The same
// files give the same bytes. It returns nil if there is no such interface.
func (s *Set) Descriptors(fullName string) []byte { return s.files.closure(fullName) }

// read makes a Set of a complete descriptor set.
func read(fds *descriptorpb.FileDescriptorSet, shown func(importPath string) string) (*Set, error) {
	files, err := newFiles(fds, shown)
	if err != nil {
		return nil, err
	}
	s := &Set{byName: map[string]*model.Interface{}, bySOMEIP: map[someipKey]*model.Interface{}, files: files}
	r := &reports{}
	for _, f := range files.interfaceFiles() {
		for i := range f.Services().Len() {
			s.Interfaces = append(s.Interfaces, readInterface(f.Services().Get(i), files, r))
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.Interfaces, func(a, b *model.Interface) int { return cmp.Compare(a.FullName(), b.FullName()) })
	for _, i := range s.Interfaces {
		s.byName[i.FullName()] = i
		if i.SOMEIP == nil {
			continue
		}
		key := someipKey{i.SOMEIP.ServiceID, uint8(i.Version.Major)}
		if s.bySOMEIP[key] == nil {
			s.bySOMEIP[key] = i
		}
	}
	return s, nil
}
