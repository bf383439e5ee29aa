package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// How far an instance is on its way out is told with it, whatever else changes,
// and forgotten with it.
func TestLeave(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	told := func() meshv1.Leaving {
		require.NoError(t, n.Flush(t.Context()))
		var leaving meshv1.Leaving
		c.lock(func() { leaving = c.services[left].GetLeaving() })
		return leaving
	}
	n.Set("rear-ecu", instance("left", true))
	require.Equal(t, meshv1.Leaving_STAYS, told())
	n.Leave(left, meshv1.Leaving_LEAVING_DRAINING)
	require.Equal(t, meshv1.Leaving_LEAVING_DRAINING, told())
	replica := instance("left", true)
	replica.Replica = true
	n.Set("rear-ecu", replica)
	require.Equal(t, meshv1.Leaving_LEAVING_DRAINING, told())
	c.lock(func() { require.True(t, c.services[left].GetReplica()) })
	n.SetServices("rear-ecu", nil)
	n.SetServices("rear-ecu", []agent.Instance{instance("left", true)})
	require.Equal(t, meshv1.Leaving_STAYS, told())
}
