package proto_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
)

// A node that has only the descriptors sees what the node with the files sees.
func TestFromDescriptorsGivesTheModelOfTheFiles(t *testing.T) {
	for _, root := range []string{cabin, "testdata/good"} {
		set, err := proto.Load(root)
		require.NoError(t, err)
		for _, want := range set.Interfaces {
			data := set.Descriptors(want.FullName())
			fds := &descriptorpb.FileDescriptorSet{}
			require.NoError(t, protobuf.Unmarshal(data, fds))
			again, err := proto.FromDescriptors(fds)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, again.Interface(want.FullName()), cmpopts.IgnoreTypes(model.Position{})))
			require.True(t, bytes.Equal(data, again.Descriptors(want.FullName())), "the bytes depend on who made them")
		}
	}
}

func TestDescriptorsAreTheFileAndItsImports(t *testing.T) {
	set, err := proto.Load(cabin)
	require.NoError(t, err)
	fds := &descriptorpb.FileDescriptorSet{}
	require.NoError(t, protobuf.Unmarshal(set.Descriptors("cabin.climate.v1.Climate"), fds))
	var names []string
	for _, f := range fds.GetFile() {
		names = append(names, f.GetName())
		require.Nil(t, f.GetSourceCodeInfo())
	}
	require.Equal(t, []string{
		"google/protobuf/descriptor.proto", "carisma/options/v1/options.proto", "google/protobuf/timestamp.proto",
		"carisma/v1/event.proto", "cabin/climate/v1/climate.proto",
	}, names)

	once := set.Descriptors("cabin.trip.v1.TripComputer")
	twice, err := proto.Load(cabin+"/cabin/trip/v1/trip.proto", cabin)
	require.NoError(t, err)
	require.Equal(t, once, twice.Descriptors("cabin.trip.v1.TripComputer"))
	require.Nil(t, set.Descriptors("cabin.climate.v1.Vent"))
	require.Nil(t, set.Descriptors("cabin.climate.v1.Nothing"))
}

// Descriptor sets from elsewhere often leave out files that everybody has.
func TestFromDescriptorsAddsFilesOfTheProgram(t *testing.T) {
	set, err := proto.Load(cabin)
	require.NoError(t, err)
	fds := &descriptorpb.FileDescriptorSet{}
	require.NoError(t, protobuf.Unmarshal(set.Descriptors("cabin.climate.v1.Climate"), fds))
	fds.File = fds.File[len(fds.File)-1:]
	again, err := proto.FromDescriptors(fds)
	require.NoError(t, err)
	require.True(t, bytes.Equal(set.Descriptors("cabin.climate.v1.Climate"), again.Descriptors("cabin.climate.v1.Climate")))

	_, err = proto.FromDescriptors(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{
		Name: protobuf.String("a.proto"), Dependency: []string{"b.proto"},
	}}})
	require.ErrorContains(t, err, `"b.proto"`)
	empty, err := proto.FromDescriptors(nil)
	require.NoError(t, err)
	require.Empty(t, empty.Interfaces)
}

func TestTwoSourcesOfAnInterface(t *testing.T) {
	_, err := proto.Load("testdata/double/a", "testdata/double/b")
	require.EqualError(t, err, `testdata/double/b/tuner.proto:6:9: symbol "double.radio.v1.Radio" already defined at testdata/double/a/radio.proto:5:9; allowed: each name once`)

	file := func(name string) *descriptorpb.FileDescriptorProto {
		return &descriptorpb.FileDescriptorProto{
			Name: protobuf.String(name), Package: protobuf.String("double.radio.v1"),
			Service: []*descriptorpb.ServiceDescriptorProto{{Name: protobuf.String("Radio")}},
		}
	}
	_, err = proto.FromDescriptors(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file("a.proto"), file("b.proto")}})
	require.EqualError(t, err, "b.proto: the interface double.radio.v1.Radio is also in a.proto; allowed: one source of each interface")
}

func TestImportPaths(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const types = "syntax = \"proto3\";\npackage a.v1;\nmessage Empty {}\n"
	const user = "syntax = \"proto3\";\npackage a.v1;\nimport \"a/v1/types.proto\";\nservice A {\n  rpc Do(Empty) returns (Empty);\n}\n"
	write("one/a/v1/types.proto", types)
	write("one/a/v1/a.proto", user)
	write("two/a/v1/types.proto", types)
	write("three/a/v1/types.proto", types+"message More {}\n")
	write("one/carisma/options/v1/options.proto", "an old copy that is not read")
	write("none/readme.txt", "")

	// A single file has the import root that its package stands for.
	set, err := proto.Load(filepath.Join(dir, "one/a/v1/a.proto"))
	require.NoError(t, err)
	require.NotNil(t, set.Interface("a.v1.A"))
	t.Chdir(filepath.Join(dir, "one/a"))
	set, err = proto.Load("v1/a.proto")
	require.NoError(t, err)
	require.Equal(t, "v1/a.proto:4:1", set.Interface("a.v1.A").Pos.String())
	t.Chdir(dir)

	// A copy is the same file, a different one is a mistake that names both.
	_, err = proto.Load("one", "two", "one")
	require.NoError(t, err)
	_, err = proto.Load("one", "three")
	require.EqualError(t, err, "three/a/v1/types.proto: a/v1/types.proto is also the import path of one/a/v1/types.proto, which differs; allowed: one file for each import path")

	_, err = proto.Load("none", "missing.proto", "one")
	require.EqualError(t, err, "missing.proto: no such file or directory\nnone: there is no .proto file in it; allowed: a directory with .proto files")
	require.ErrorIs(t, err, fs.ErrNotExist)
	set, err = proto.Load()
	require.NoError(t, err)
	require.Empty(t, set.Interfaces)
}
