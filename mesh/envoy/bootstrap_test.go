package envoy_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/unixsock"
)

var update = flag.Bool("update", false, "write the golden files")

func TestBootstrap(t *testing.T) {
	t.Parallel()
	got, err := envoy.Bootstrap{
		NodeID: "7f0c9a52", NodeName: "rear", // CAR-11
		ADSSocket: "/run/carisma/ads.sock", AdminSocket: "/run/carisma/envoy.sock",
	}.JSON()
	require.NoError(t, err)
	golden := filepath.Join("testdata", "bootstrap.golden.json")
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestSocketPathsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := envoy.New(envoy.Config{State: "/" + strings.Repeat("d", 100), ADSSocket: "/run/ads.sock"})
	var tooLong *unixsock.PathError
	require.ErrorAs(t, err, &tooLong)
	require.ErrorContains(t, err, "shorter state directory")
}
