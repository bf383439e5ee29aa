package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// CAR-50: a node that starts while the control plane is away knows the mesh as it
// was told last, with descriptors. What it bridges itself it has yet to find.
func TestKeepsTheMesh(t *testing.T) {
	c := newCentral(t)
	set := []byte("descriptors of trip")
	c.sets[hash(set)] = set
	up := func(node, name string, origin meshv1.Protocol) *meshv1.MeshService {
		return &meshv1.MeshService{NodeId: "id of " + node, NodeName: node, Service: &meshv1.ServiceInstance{
			Name: name, State: meshv1.InstanceState_INSTANCE_UP, Descriptors: hash(set), Origin: &meshv1.Origin{Protocol: origin},
		}}
	}
	c.others = []*meshv1.MeshService{
		up("center", "a", meshv1.Protocol_GRPC), up("center", "b", meshv1.Protocol_SOMEIP),
		up("rear", "c", meshv1.Protocol_GRPC), up("rear", "d", meshv1.Protocol_SOMEIP),
	}
	state := t.TempDir()
	n := start(t, c, state)
	require.Len(t, <-n.services, 4)
	n.stop()
	c.stop()

	n = start(t, c, state)
	services := <-n.services
	require.Len(t, services, 4)
	for i, s := range services[:3] {
		require.Equal(t, c.others[i].GetService().GetName(), s.GetService().GetName())
		require.Equal(t, meshv1.InstanceState_INSTANCE_UP, s.GetService().GetState())
		require.Equal(t, set, s.Descriptors)
	}
	require.Equal(t, meshv1.InstanceState_INSTANCE_DOWN, services[3].GetService().GetState())
	require.Contains(t, services[3].GetService().GetReason(), "has not seen it")
	n.stop()

	// A file that cannot be read is as good as none.
	require.NoError(t, os.WriteFile(filepath.Join(state, "mesh.kept"), []byte("no message"), 0o600))
	c.others = c.others[:1]
	c.start(t, c.addr)
	n = start(t, c, state)
	require.Len(t, <-n.services, 1)
}
