package faults_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/faults"
	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/hosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func loadSuites(t *testing.T) []*faults.Suite {
	t.Helper()
	suites, err := faults.LoadSuites(".")
	require.NoError(t, err)
	return suites
}

// CAR-50, 10, 39 and the bounds of every scenario: who is not concerned sees
// nothing, who is gets the status that is stated, in the time that is stated.
func TestFaults(t *testing.T) {
	envoy := peers.Need(t, peers.Envoy)[0]
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	carisma, err := filepath.Abs("../../bin/carisma")
	require.NoError(t, err)
	if _, err := os.Stat(carisma); err != nil {
		t.Skip("make build builds it:", err)
	}
	suites := loadSuites(t)
	if os.Getenv("CI") == "true" {
		t.Log("the short slice, because CI is true")
		for i, s := range suites {
			suites[i] = s.Only(func(s *faults.Scenario) bool { return s.Slice })
		}
	}
	dir, err := os.MkdirTemp("", "faults-") //nolint:usetesting // short, for its Unix sockets
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	_, err = faults.Run(t.Context(), faults.Options{Carisma: carisma, Envoy: envoy, Dir: dir}, suites,
		func(r *faults.Result) {
			failures := r.Failures()
			t.Logf("%s: %.1f s, %d failures, played again %d times", r.Title, r.Took, len(failures), r.Again)
			for _, f := range failures {
				t.Log("  ", f)
			}
		})
	require.NoError(t, err, "logs are in %s", dir)
}

// The page is made of the results of the scenarios that there are.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("results.json")
	require.NoError(t, err)
	report := new(faults.Report)
	require.NoError(t, json.Unmarshal(data, report))
	var have, want []string
	for _, part := range report.Parts {
		for _, r := range part.Results {
			require.Empty(t, r.Failures(), r.Title)
			have = append(have, r.Title)
		}
	}
	for _, suite := range loadSuites(t) {
		for _, s := range suite.Scenarios {
			want = append(want, s.Title)
		}
	}
	require.Equal(t, want, have, "make reliability")
	soak, err := faults.ReadSoak("soak.json")
	require.NoError(t, err)
	if soak != nil {
		require.Empty(t, soak.Failures())
	}
	page, err := report.Page(soak)
	require.NoError(t, err)
	written, err := os.ReadFile("../../docs/reliability.md")
	require.NoError(t, err)
	require.Equal(t, string(page), string(written), "make reliability")
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Mistakes in scenario files are found before anything runs, with their place.
func TestMistakes(t *testing.T) {
	const loads = "loads:\n  - {name: a, doc: a, host: center, authority: x, method: /x.v1.X/Y}\n"
	for name, c := range map[string]struct{ file, want string }{
		"two actions":    {"title: t\nsteps:\n  - {wait: 1s, kill: x}\n", "10-x.yaml:3:5"},
		"unknown key":    {"title: t\nsteps: []\nstep: 1\n", "10-x.yaml:3:1"},
		"unknown load":   {"title: t\nsteps: [{wait: 1s}]\nconcerned:\n  - loads: [b]\n", `no load "b"`},
		"bad expression": {"title: t\nsteps: [{wait: 1s}]\nconcerned:\n  - {loads: [a], reason: '('}\n", "10-x.yaml:4"},
		"not a step":     {"title: t\nsteps: [{}]\n", "0 actions"},
	} {
		_, err := faults.LoadSuite(write(t, map[string]string{"loads.yaml": loads, "10-x.yaml": c.file}))
		require.ErrorContains(t, err, c.want, name)
	}
	_, err := faults.LoadSuite(write(t, map[string]string{"loads.yaml": strings.Replace(loads, ", authority: x", "", 1)}))
	require.ErrorContains(t, err, "loads.yaml:2:5")
}
