package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/docs"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n"), 0o600))
	for range 2 {
		require.NoError(t, docs.Replace(path, "x", []byte("new\nlines\n\n")))
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "a\n<!-- begin x -->\nnew\nlines\n<!-- end x -->\nb\n", string(page))
	}
	require.ErrorContains(t, docs.Replace(path, "y", nil), "no line")
	require.NoError(t, os.WriteFile(path, []byte("<!-- begin x -->\n"), 0o600))
	require.ErrorContains(t, docs.Replace(path, "x", nil), "after the section's begin")
	require.Error(t, docs.Replace(filepath.Join(t.TempDir(), "none"), "x", nil))
}
