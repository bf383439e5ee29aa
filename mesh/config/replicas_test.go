package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/config"
)

// CAR-52: an instance is in one set at most.
func TestReplicas(t *testing.T) {
	t.Parallel()
	const head = "name: body\naddress: 10.77.2.1/24\nclient_ids: 0x1100\nreplicas:\n"
	var n config.Network
	require.NoError(t, config.Decode("n", []byte(head+
		"  - {interface: a.v1.I, name: any, instances: [left, right]}\n  - {interface: b.v1.I, name: any, instances: [left]}\n"), &n))
	name, ok := n.ReplicaName("a.v1.I", "right")
	require.True(t, ok)
	require.Equal(t, "any", name)
	_, ok = n.ReplicaName("b.v1.I", "right")
	require.False(t, ok)

	err := config.Decode("n", []byte(head+
		"  - {interface: a.v1.I, name: any, instances: [left]}\n  - {interface: a.v1.I, name: some, instances: [left]}\n"), &n)
	require.ErrorContains(t, err, `instance "left" of a.v1.I is one of "any" already`)
	err = config.Decode("n", []byte(head+
		"  - {interface: a.v1.I, name: any, instances: [left]}\n  - {interface: a.v1.I, name: any, instances: [right]}\n"), &n)
	require.ErrorContains(t, err, "declared twice")
}
