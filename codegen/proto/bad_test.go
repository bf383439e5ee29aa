package proto_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/proto"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Each file of testdata/bad has one kind of mistake. Every mistake has a line and
// a column, and where it is not plain, what is allowed.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.proto")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".proto"), func(t *testing.T) {
			_, err := proto.Load(path)
			requirePlaced(t, err)
			golden(t, strings.TrimSuffix(path, ".proto")+".golden", filepath.ToSlash(err.Error())+"\n")
		})
	}
	goldens, err := filepath.Glob("testdata/bad/*.golden")
	require.NoError(t, err)
	require.Len(t, goldens, len(files), "a golden file without a .proto")
}

// requirePlaced requires that all errors are mistakes with a place.
func requirePlaced(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	all, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "not a list of errors: %v", err)
	for _, err := range all.Unwrap() {
		var mistake *proto.Error
		require.ErrorAs(t, err, &mistake)
		require.NotEmpty(t, mistake.Pos.File, "%v", err)
		require.Positive(t, mistake.Pos.Line, "%v", err)
		require.Positive(t, mistake.Pos.Column, "%v", err)
	}
}
