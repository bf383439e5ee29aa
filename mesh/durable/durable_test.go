package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/durable"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first, and longer", "second"} {
		require.NoError(t, durable.WriteFile(path, []byte(text)))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	require.Error(t, durable.WriteFile(filepath.Join(dir, "none", "file"), nil))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "taken"), 0o700))
	require.Error(t, durable.WriteFile(filepath.Join(dir, "taken"), nil))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing else is left behind")
}
