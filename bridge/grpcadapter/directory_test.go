package grpcadapter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One replica that is up speaks for all, whatever the order they are told in.
func TestDirectoryReplicas(t *testing.T) {
	t.Parallel()
	entry := func(node string, up bool, since int64) CatalogueEntry {
		return CatalogueEntry{
			Name: "default.a.v1.i", Interface: "a.v1.I", Instance: "default", NodeName: node,
			Up: up, Reason: "why " + node, Since: time.Unix(since, 0),
		}
	}
	for name, c := range map[string]struct {
		entries []CatalogueEntry
		node    string
		up      bool
	}{
		"up after down":  {[]CatalogueEntry{entry("a", false, 1), entry("b", true, 2)}, "b", true},
		"down after up":  {[]CatalogueEntry{entry("b", true, 2), entry("c", false, 3)}, "b", true},
		"the oldest":     {[]CatalogueEntry{entry("a", true, 2), entry("b", true, 1), entry("c", true, 3)}, "b", true},
		"none is up":     {[]CatalogueEntry{entry("a", false, 1), entry("b", false, 2)}, "a", false},
		"only one, down": {[]CatalogueEntry{entry("a", false, 1)}, "a", false},
	} {
		d := newDirectory(nil, c.entries, "self")
		got := d.targets["default.a.v1.i"]
		require.Equal(t, c.up, got.up, name)
		require.Equal(t, c.node, got.node, name)
		require.Same(t, got, d.families["a.v1.I"].instances["default"], name)
		require.Len(t, d.families["a.v1.I"].instances, 1, name)
	}
}
