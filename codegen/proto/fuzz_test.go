package proto_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/proto"
)

// Any text is read or refused with *Error, and what is read is read again from
// its descriptors.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.proto", "testdata/good/kinds/v2/*.proto", cabin + "/cabin/*/v1/*.proto"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range files {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "fuzz.proto")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		set, err := proto.Load(path)
		if err != nil {
			requireMistakes(t, err)
			return
		}
		for _, i := range set.Interfaces {
			fds := &descriptorpb.FileDescriptorSet{}
			require.NoError(t, protobuf.Unmarshal(set.Descriptors(i.FullName()), fds))
			_, err := proto.FromDescriptors(fds)
			require.NoError(t, err)
		}
	})
}

// A descriptor set comes from other nodes: whatever it is, it is read or refused.
func FuzzFromDescriptors(f *testing.F) {
	for _, root := range []string{cabin, "testdata/good"} {
		set, err := proto.Load(root)
		require.NoError(f, err)
		for _, i := range set.Interfaces {
			f.Add(set.Descriptors(i.FullName()))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fds := &descriptorpb.FileDescriptorSet{}
		if protobuf.Unmarshal(data, fds) != nil {
			return
		}
		if _, err := proto.FromDescriptors(fds); err != nil {
			requireMistakes(t, err)
		}
	})
}

func requireMistakes(t *testing.T, err error) {
	t.Helper()
	var mistake *proto.Error
	require.ErrorAs(t, err, &mistake)
	require.NotEmpty(t, err.Error())
}
