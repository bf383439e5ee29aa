// Protogen writes the Go code of .proto files: it compiles them without protoc
// and hands them to the plugins of protobuf-go and grpc-go.
//
//	protogen -I dir [-I dir …] [-grpc] file.proto …
//
// File names are relative to an import directory. The output goes to the
// package that go_package names, below the module root.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const module = "carisma.dev/gateway"

func main() {
	var imports []string
	flag.Func("I", "import `directory`", func(s string) error { imports = append(imports, s); return nil })
	root := flag.String("root", ".", "module root")
	withGRPC := flag.Bool("grpc", false, "write service code too")
	flag.Parse()
	if err := run(*root, imports, flag.Args(), *withGRPC); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(root string, imports, files []string, withGRPC bool) error {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: imports}),
		// Comments become doc comments.
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("module=" + module),
	}
	seen := map[string]bool{}
	for _, f := range compiled {
		request.ProtoFile = appendWithImports(request.ProtoFile, f, seen)
	}
	plugins := []string{"protoc-gen-go"}
	if withGRPC {
		plugins = append(plugins, "protoc-gen-go-grpc")
	}
	for _, plugin := range plugins {
		if err := runPlugin(root, plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// appendWithImports lists a file after everything it imports, as plugins want it.
func appendWithImports(list []*descriptorpb.FileDescriptorProto, f protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return list
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		list = appendWithImports(list, f.Imports().Get(i).FileDescriptor, seen)
	}
	return append(list, protodesc.ToFileDescriptorProto(f))
}

func runPlugin(root, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	in, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Dir = root
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	slices.SortFunc(response.File, func(a, b *pluginpb.CodeGeneratorResponse_File) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	for _, f := range response.File {
		path := filepath.Join(root, filepath.FromSlash(f.GetName()))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
