package proto_test

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/proto"
)

// Files of other projects are read, or refused with a place.
func TestCorpus(t *testing.T) {
	root := filepath.Join(cmp.Or(os.Getenv("CARISMA_CORPUS"), "../../../shared/corpus"), "proto")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus of .proto files (set CARISMA_CORPUS): %v", err)
	}
	files, readable, interfaces := 0, 0, 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".proto" {
			return err
		}
		files++
		set, err := proto.Load(path)
		if err == nil {
			readable++
			interfaces += len(set.Interfaces)
			return nil
		}
		requirePlaced(t, err)
		return nil
	}))
	t.Logf("%d files, %d read, %d interfaces", files, readable, interfaces)
	require.Positive(t, readable)

	projects, err := filepath.Glob(filepath.Join(root, "*"))
	require.NoError(t, err)
	for _, project := range projects {
		set, err := proto.Load(project)
		var mistake *proto.Error
		if err != nil {
			require.True(t, errors.As(err, &mistake), "%v", err)
			t.Logf("%s: %v", filepath.Base(project), mistake)
			continue
		}
		t.Logf("%s: %d interfaces", filepath.Base(project), len(set.Interfaces))
	}
}
