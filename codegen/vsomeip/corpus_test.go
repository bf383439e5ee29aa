package vsomeip_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/vsomeip"
	"carisma.dev/gateway/someip/runtime"
)

// corpus calls f for each configuration of the corpus.
func corpus(t *testing.T, f func(path, name string)) {
	t.Helper()
	root := filepath.Join(cmp.Or(os.Getenv("CARISMA_CORPUS"), "../../../shared/corpus"), "vsomeip-json")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus of configurations (set CARISMA_CORPUS): %v", err)
	}
	n := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".json" {
			n++
			name, _ := filepath.Rel(root, path)
			f(path, filepath.ToSlash(name))
		}
		return err
	}))
	require.GreaterOrEqual(t, n, 150)
}

// What is wrong with configurations of the corpus, by the end of their names.
var mistakes = map[string]string{
	"configuration_test.json":              `configuration_test.json:112:13: key "threads" is there twice`,
	"multiple_client_one_process_uds.json": "multiple_client_one_process_uds.json:28:5: no JSON: invalid character ']'",
}

// Every configuration of the corpus is read, every key of it is in the table, or
// its mistake has a place.
func TestCorpus(t *testing.T) {
	failed := 0
	corpus(t, func(path, name string) {
		c, err := vsomeip.Load(path)
		if want := mistakes[filepath.Base(path)]; want != "" {
			require.ErrorContains(t, err, want)
			failed++
			return
		}
		require.NoError(t, err, name)
		require.NotNil(t, c)
	})
	require.Equal(t, len(mistakes), failed)
}

// The keys of the one configuration that has a key twice are in the table, too.
func TestCorpusKeysOfMistaken(t *testing.T) {
	corpus(t, func(path, _ string) {
		if filepath.Base(path) != "configuration_test.json" {
			return
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(string(b), "\n")
		mended := strings.Join(slices.Delete(lines, 111, 112), "\n")
		c, err := vsomeip.Parse(path, []byte(mended))
		require.NoError(t, err)
		require.NotEmpty(t, c.Services)
	})
}

// The page is that of the table, and the settings in it exist.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/vsomeip-config.md")
	require.NoError(t, err)
	require.Equal(t, string(vsomeip.Markdown()), string(page), "run make gen")

	types := map[string]reflect.Type{}
	for _, v := range []any{
		runtime.NetworkConfig{},
		runtime.SDConfig{},
		runtime.ServiceConfig{},
		runtime.EventConfig{},
		runtime.EventgroupConfig{},
		runtime.Deployment{},
		runtime.MessageConfig{},
		runtime.E2EConfig{},
		runtime.SubscribeConfig{},
		runtime.FilterConfig{},
		runtime.StaticInstance{},
	} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	named := regexp.MustCompile(`\b([A-Z]\w*Config|Deployment|StaticInstance)\.([A-Z]\w*)`)
	for _, p := range vsomeip.Parameters {
		for _, text := range []string{p.Setting, p.Note} {
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				require.Contains(t, types, m[1], p.Key)
				_, ok := types[m[1]].FieldByName(m[2])
				require.True(t, ok, "%s: there is no %s", p.Key, m[0])
			}
		}
		require.True(t, p.Setting == "" || named.MatchString(p.Setting), p.Key)
		require.True(t, p.Setting != "" || p.Note != "", "%s: neither a setting nor a reason", p.Key)
		require.NotContains(t, p.Means+p.Note+p.Setting, "|")
	}
}
