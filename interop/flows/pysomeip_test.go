package flows_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/run"
	"carisma.dev/gateway/vehicles/scenario"
)

// pysomeip is a second speaker of service discovery, in both roles: its climate ECU
// is found by rear's gateway, called and watched from center through the proxies,
// stopped, killed and started again; and as instrument cluster it finds, calls and
// subscribes to the native gRPC service that rear exposes. tshark judges all of it.
func TestPysomeip(t *testing.T) {
	python := peers.Need(t, peers.Envoy, peers.Python)[1]
	needNamespaces(t)
	v, err := vehicles.Load(cabin)
	require.NoError(t, err)
	for component, file := range map[string]string{"climate-ecu": "pysomeip_climate.py", "cluster": "pysomeip_cluster.py"} {
		path, err := filepath.Abs(filepath.Join("../python", file))
		require.NoError(t, err)
		v.Component(component).Command = []string{python, path}
	}
	s, err := scenario.Load("testdata/pysomeip.yaml", v)
	require.NoError(t, err)
	transcript, _ := judged(t, prepareVehicle(t, v, run.Options{Namespaces: true}), s)
	checkTranscript(t, "testdata/pysomeip.golden", transcript)
}
