package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// A gateway that gives up an ECU of which another has sight hands it over, and
// serves to the end what it was sent.
func TestOwnerLeaves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.join("rear"), b.join("center")
	b.sync(first, someipService(climate, "left"))
	b.sync(second, someipService(climate, "left"))
	name := "left.cabin.climate.v1.climate"
	owner, standby := b.instances(name)[0], b.instances(name)[1]
	require.Equal(t, "rear", owner.Node.Name)
	require.False(t, owner.Standby)
	require.True(t, standby.Standby)

	leaves := someipService(climate, "left")
	leaves.Generation, leaves.Leaving = 1, meshv1.Leaving_LEAVING_DRAINING
	_, err := b.Update(first, []*meshv1.ServiceInstance{leaves}, nil)
	require.NoError(t, err)
	owner, leaver := b.instances(name)[0], b.instances(name)[1]
	require.Equal(t, "center", owner.Node.Name)
	require.False(t, owner.Standby)
	require.False(t, leaver.Standby, "its ingress still serves it")
	require.Equal(t, meshv1.Leaving_LEAVING_DRAINING, leaver.Leaving)
}

// CAR-52: declared replicas of a SOME/IP service share a name and none is a standby.
func TestDeclaredReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second, third := b.join("rear"), b.join("center"), b.join("front")
	replica := func(instance uint32) *meshv1.ServiceInstance {
		s := someipService(climate, "any")
		s.Replica, s.Origin.InstanceId = true, instance
		return s
	}
	b.sync(first, replica(1))
	b.sync(second, replica(2))
	for _, inst := range b.instances("any.cabin.climate.v1.climate") {
		require.False(t, inst.Standby)
	}
	require.Len(t, b.instances("any.cabin.climate.v1.climate"), 2)

	// Who does not declare it so means another thing.
	other := replica(3)
	other.Replica = false
	refusals, err := b.Synchronize(third, []*meshv1.ServiceInstance{other})
	require.NoError(t, err)
	require.Len(t, refusals, 1)
}
