package xds

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api/meshv1"
)

func snapNode(id string, last byte) *registry.Node {
	a := netip.AddrFrom4([4]byte{10, 0, 0, last})
	return &registry.Node{Synced: true, Node: store.Node{ID: id, Name: "node-" + id, Address: a, Proxy: &store.Proxy{
		Ingress: netip.AddrPortFrom(a, 15001), Egress: netip.MustParseAddrPort("127.0.0.1:15000"),
		EgressSocket: "/run/egress.sock", GatewaySocket: "/run/gateway.sock",
	}}}
}

func snapService(name string, nodes ...*registry.Node) *registry.Service {
	s := &registry.Service{Name: name}
	for _, n := range nodes {
		s.Instances = append(s.Instances, &registry.Instance{
			Node: n, Up: true, Spec: &meshv1.ServiceInstance{},
			Address: registry.Address{Addr: netip.MustParseAddrPort("127.0.0.1:5000")},
		})
	}
	return s
}

func newSnapshot(services []*registry.Service, nodes ...*registry.Node) *registry.Snapshot {
	snap := &registry.Snapshot{
		Version: 1, Settled: true,
		Nodes: map[string]*registry.Node{}, Services: map[string]*registry.Service{}, Interfaces: map[string]*registry.Interface{},
	}
	for _, n := range nodes {
		snap.Nodes[n.ID] = n
	}
	for _, s := range services {
		snap.Services[s.Name] = s
	}
	return snap
}

func versions(c *Cache, node, typeURL string) map[string]string {
	all := map[string]string{}
	for name, r := range c.nodes[node].sets[typeURL].resources {
		all[name] = r.Version
	}
	return all
}

// A service that moves changes endpoints and nothing else, so that no cluster has
// to warm up and no listener drains (CAR-22).
func TestMoveChangesEndpointsOnly(t *testing.T) {
	t.Parallel()
	a, b := snapNode("a", 1), snapNode("b", 2)
	cache := NewCache(slog.New(slog.DiscardHandler))
	tr := NewTranslator(cache, nil, cache.log)
	const name = "left.cabin.climate.v1.climate"
	before := newSnapshot([]*registry.Service{snapService(name, a)}, a, b)
	tr.Translate(before, everythingOf(before))
	was := map[string]map[string]string{}
	for _, typ := range types {
		was[typ] = versions(cache, "b", typ)
	}
	require.Contains(t, was[eds], name+"/remote")
	require.NotContains(t, was[cds], name+"/in", "CAR-23: ingress has what is local")
	require.Contains(t, versions(cache, "a", cds), name+"/in")

	after := newSnapshot([]*registry.Service{snapService(name, a, b)}, a, b)
	tr.Translate(after, registry.Changes{Services: map[string]bool{name: true}})
	require.Equal(t, was[lds], versions(cache, "b", lds))
	require.Equal(t, was[rds], versions(cache, "b", rds))
	now := versions(cache, "b", cds)
	delete(now, name+"/in")
	require.Equal(t, was[cds], now)
	ends := versions(cache, "b", eds)
	require.NotEqual(t, was[eds][name+"/local"], ends[name+"/local"])
	require.NotEqual(t, was[eds][name+"/remote"], ends[name+"/remote"])

	gone := newSnapshot(nil, a, b)
	tr.Translate(gone, registry.Changes{Services: map[string]bool{name: true}})
	require.Len(t, versions(cache, "b", cds), 1)
	require.Empty(t, versions(cache, "b", eds))
	require.Empty(t, tr.clusters)
}

// The clusters of a service are the same on all nodes and do not depend on where
// it is; the route tables too (CAR-4).
func TestSharedResources(t *testing.T) {
	t.Parallel()
	a, b := snapNode("a", 1), snapNode("b", 2)
	cache := NewCache(slog.New(slog.DiscardHandler))
	snap := newSnapshot([]*registry.Service{snapService("x.v1.y", a)}, a, b)
	NewTranslator(cache, nil, cache.log).Translate(snap, everythingOf(snap))
	for _, name := range []string{"x.v1.y", "x.v1.y/local", "x.v1.y/remote"} {
		require.Same(t, cache.nodes["a"].sets[cds].resources[name], cache.nodes["b"].sets[cds].resources[name])
	}
	require.Same(t, cache.nodes["a"].sets[rds].resources[egressName], cache.nodes["b"].sets[rds].resources[egressName])
}

// CAR-34: a node without a proxy gets no configuration.
func TestNodeWithoutProxy(t *testing.T) {
	t.Parallel()
	n := snapNode("cloud", 9)
	n.Proxy = nil
	cache := NewCache(slog.New(slog.DiscardHandler))
	snap := newSnapshot(nil, n)
	NewTranslator(cache, nil, cache.log).Translate(snap, everythingOf(snap))
	require.Empty(t, versions(cache, "cloud", lds))
}

// What mesh.md's settings are about: nothing cuts a stream off, no pings to local
// services, pings to other nodes, one listener on TCP and Unix.
func TestSettings(t *testing.T) {
	t.Parallel()
	all, err := newServiceClusters("x.v1.y")
	require.NoError(t, err)
	for i, r := range all.egress {
		var c clusterv3.Cluster
		require.NoError(t, r.any.UnmarshalTo(&c))
		if i > 0 {
			var options httpv3.HttpProtocolOptions
			require.NoError(t, c.GetTypedExtensionProtocolOptions()[http2Options].UnmarshalTo(&options))
			pings := options.GetExplicitHttpConfig().GetHttp2ProtocolOptions().GetConnectionKeepalive()
			require.Equal(t, i == 2, pings != nil, "pings go to other nodes only")
		}
		require.Equal(t, uint32(maxRequests), c.GetCircuitBreakers().GetThresholds()[0].GetMaxRequests().GetValue())
		require.NotNil(t, c.GetCircuitBreakers().GetThresholds()[0].GetRetryBudget())
	}
	listeners, err := newListeners(snapNode("a", 1).Proxy)
	require.NoError(t, err)
	require.Len(t, listeners, 2)
	for _, r := range listeners {
		var l listenerv3.Listener
		require.NoError(t, r.any.UnmarshalTo(&l))
		require.False(t, l.GetEnableReusePort().GetValue())
		require.Equal(t, l.GetName() == egressName, len(l.GetAdditionalAddresses()) == 1)
	}
	routes, err := newEgressRoutes(map[string]*registry.Interface{"a.v1.A": {Name: "a.v1.A", Services: []string{"x"}, Default: "x"}})
	require.NoError(t, err)
	var rc routev3.RouteConfiguration
	require.NoError(t, routes.any.UnmarshalTo(&rc))
	for _, r := range rc.GetVirtualHosts()[0].GetRoutes() {
		if a := r.GetRoute(); a != nil {
			require.NotNil(t, a.GetTimeout())
			require.Zero(t, a.GetTimeout().AsDuration())
			require.Zero(t, a.GetIdleTimeout().AsDuration())
		}
	}
}

// The route table grows with interfaces, not with instances.
func TestRoutesDoNotGrowWithInstances(t *testing.T) {
	t.Parallel()
	one := map[string]*registry.Interface{"a.v1.A": {Name: "a.v1.A", Services: []string{"i0.a.v1.a"}, Default: "i0.a.v1.a"}}
	many := map[string]*registry.Interface{"a.v1.A": {Name: "a.v1.A", Services: strings.Fields(strings.Repeat("x ", 500)), Default: "i0.a.v1.a"}}
	a, err := newEgressRoutes(one)
	require.NoError(t, err)
	b, err := newEgressRoutes(many)
	require.NoError(t, err)
	require.Equal(t, a.Version, b.Version)
	many["a.v1.A"].Default = ""
	c, err := newEgressRoutes(many)
	require.NoError(t, err)
	require.Less(t, len(c.any.GetValue()), len(a.any.GetValue())+600)
}

func TestInvalidResource(t *testing.T) {
	t.Parallel()
	_, err := NewResource(cds, &clusterv3.Cluster{Name: ""})
	require.ErrorContains(t, err, "Name")
}

func TestVersioned(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"cabin.climate.v1.Climate": true, "v2.A": true, "a.V10.A": true,
		"legacy.Thermo": false, "a.v1": false, "a.version1.A": false, "a.v.A": false, "A": false, "a.v1x.B": false,
	} {
		require.Equal(t, want, versioned(name), name)
	}
}
