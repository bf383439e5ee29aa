// Package corpus finds the captures, frames and vectors of other implementations in the
// directory that CARISMA_CORPUS names, for tests and as inputs of fuzz targets. Where
// there is none a test is skipped, and a fuzz target has the inputs it wrote itself.
// Nothing of the corpus becomes a file here: what the fuzzer keeps of it stays in Go's
// cache.
package corpus

import (
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root returns the directory of the corpus, that beside the module without other word.
func root(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("CARISMA_CORPUS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for filepath.Dir(dir) != dir {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "corpus")
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// Path returns where a file or directory of the corpus is, and skips the test if it is
// not there.
func Path(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(root(tb), name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("no corpus (set CARISMA_CORPUS): %v", err)
	}
	return path
}

// Read returns the content of a file of the corpus, and skips the test if it is not
// there.
func Read(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(Path(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Files returns the content of the files of at most limit bytes below a directory of the
// corpus whose names end in one of the endings; all without one.
func Files(tb testing.TB, dir string, limit int, endings ...string) (files [][]byte) {
	tb.Helper()
	top := filepath.Join(root(tb), dir)
	if _, err := os.Stat(top); err != nil {
		tb.Logf("no seeds of the corpus (set CARISMA_CORPUS): %v", err)
		return nil
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !ends(path, endings) {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // below the corpus
		if err == nil && len(b) <= limit {
			files = append(files, b)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

func ends(path string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(path, e) {
			return true
		}
	}
	return len(endings) == 0
}

// Texts returns the bytes of every hexadecimal text of two bytes or more in the JSON files
// below a directory.
func Texts(tb testing.TB, dir string) (all [][]byte) {
	tb.Helper()
	for _, file := range Files(tb, dir, 1<<20, ".json") {
		var v any
		if err := json.Unmarshal(file, &v); err != nil {
			tb.Fatal(err)
		}
		all = texts(v, all)
	}
	return all
}

func texts(v any, all [][]byte) [][]byte {
	switch v := v.(type) {
	case string:
		if b, err := hex.DecodeString(strings.ReplaceAll(v, " ", "")); err == nil && len(b) >= 2 {
			all = append(all, b)
		}
	case []any:
		for _, e := range v {
			all = texts(e, all)
		}
	case map[string]any:
		for _, e := range v {
			all = texts(e, all)
		}
	}
	return all
}
