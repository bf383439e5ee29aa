package xds

import (
	"math"
	"net/netip"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/controlplane/view"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// FuzzAccepted shows that whatever the registry takes from a node makes valid
// resources, so that one service cannot spoil a response for all.
func FuzzAccepted(f *testing.F) {
	f.Add("cabin.climate.v1.Climate", "left", "127.0.0.1:5000")
	f.Add("legacy.Thermo", "Türe 1", "unix:/run/x.sock")
	f.Add("a.v1.A", "100%\n", "[fd00::1]:80")
	f.Add("a.b", "\x00", "localhost:70000")
	s, err := store.Open(filepath.Join(f.TempDir(), "store.db"))
	require.NoError(f, err)
	r, err := registry.New(registry.Config{Store: s, Changes: math.MaxInt32})
	require.NoError(f, err)
	f.Cleanup(func() {
		r.Close()
		s.Close()
	})
	a := netip.MustParseAddr("10.0.0.1")
	rec := store.Node{Name: "center", Address: a, Proxy: &store.Proxy{
		Ingress: netip.AddrPortFrom(a, 1), Egress: netip.AddrPortFrom(a, 2), GatewaySocket: "/gw",
	}}
	guard := regexp.MustCompile("^" + meshName + "$")
	f.Fuzz(func(t *testing.T, iface, instance, address string) {
		id, _, err := r.Register(registry.Registration{Node: rec})
		if err != nil { // the lease of an earlier input lives
			for _, n := range r.Snapshot().Nodes {
				id = api.Identity{ID: n.ID, Epoch: n.Epoch}
			}
			require.NoError(t, r.Beat(id))
		}
		refusals, err := r.Synchronize(id, []*meshv1.ServiceInstance{{
			Name: api.MeshName(iface, instance), Interface: iface, Instance: instance, Address: address,
			Origin: &meshv1.Origin{Protocol: meshv1.Protocol_GRPC}, State: meshv1.InstanceState_INSTANCE_UP,
		}})
		require.NoError(t, err)
		snap := r.Snapshot()
		if len(refusals) > 0 {
			require.Empty(t, snap.Services)
			return
		}
		for name, svc := range snap.Services {
			require.Equal(t, versioned(iface), guard.MatchString(name), name)
			_, err := newServiceClusters(name)
			require.NoError(t, err)
			_, err = newAssignment(localCluster(name), view.LocalOf(id.ID, svc))
			require.NoError(t, err)
		}
		_, err = newEgressRoutes(snap.Interfaces)
		require.NoError(t, err)
	})
}
