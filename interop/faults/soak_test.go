package faults

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadSoak(t *testing.T) {
	path := filepath.Join(t.TempDir(), "soak.json")
	s, err := ReadSoak(path)
	require.NoError(t, err)
	require.Nil(t, s, "none is recorded")

	require.NoError(t, os.WriteFile(path, []byte(`{"took_s": 3600, "programs": [{"name": "rear/gateway",
		"start": {"anon_kib": 1000, "goroutines": 100}, "end": {"anon_kib": 1100, "goroutines": 100}}]}`), 0o600))
	s, err = ReadSoak(path)
	require.NoError(t, err)
	require.Empty(t, s.Failures())

	require.NoError(t, os.WriteFile(path, []byte(`[`), 0o600))
	_, err = ReadSoak(path)
	require.ErrorContains(t, err, path)
}

// Whatever piles up in a program is a failure, and so is that nothing was measured.
func TestSoakFailures(t *testing.T) {
	start := Footprint{AnonKiB: 1000, Descriptors: 10, Goroutines: 100}
	for _, end := range []Footprint{
		{AnonKiB: 1101, Descriptors: 10, Goroutines: 100},
		{AnonKiB: 1000, Descriptors: 11, Goroutines: 100},
		{AnonKiB: 1000, Descriptors: 10, Goroutines: 101},
	} {
		s := &Soak{Programs: []*SoakProgram{{Name: "rear/gateway", Start: start, End: end}}}
		require.Len(t, s.Failures(), 1, end)
	}
	require.Equal(t, []string{"no program was measured"}, new(Soak).Failures())
}
