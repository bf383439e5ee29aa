package controlplane

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"carisma.dev/gateway/controlplane/xds"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// becomes waits until a call has a result.
func (c *caller) becomes(method, instance, want string) {
	c.t.Helper()
	var got string
	eventually(c.t, "a call gives "+want, func() bool {
		got = c.call(method, instance)
		return got == want
	})
}

// CAR-27, 29, 30, 46: two HPCs. Callers know their own egress only and ask no
// registry; services come, go and move, and nobody is started anew.
func TestEnvoyTwoNodes(t *testing.T) {
	p := startPlane(t, t.TempDir())
	center, rear := p.join(t, "center", "127.0.0.1"), p.join(t, "rear", "127.0.0.2")
	for _, a := range []*agent{center, rear} {
		l, err := net.Listen("unix", a.req.GetProxy().GetGatewaySocket())
		require.NoError(t, err)
		serve(t, l, "", status.Error(codes.Unavailable, "gateway of "+a.req.GetName()+" says why"))
		a.startEnvoy()
		a.sync() // CAR-49: nothing yet, and the listeners are there
		a.acked()
	}
	get := "/" + climate + "/Get"
	name := "left." + lower(climate)
	byAuthority := dial(t, center.egress(), name)
	byPath := dial(t, center.egress(), "")
	local := dial(t, rear.egress(), name)
	require.Equal(t, "NotFound: no service "+name+" in the mesh", byAuthority.call(get, ""))
	require.Equal(t, "Unimplemented: no such interface in the mesh", byPath.call(get, ""))

	left := native(climate, "left", serveTCP(t, "left-on-rear"))
	rear.set(left)
	byAuthority.becomes(get, "", "left-on-rear "+name+" ")
	byPath.becomes(get, "", "left-on-rear "+name+" left")
	require.Equal(t, "left-on-rear "+center.host()+" left", byPath.call(get, "left"))
	local.becomes(get, "", "left-on-rear "+name+" ")

	t.Run("ingress carries the local view only", func(t *testing.T) { // CAR-23
		require.Equal(t, "left-on-rear "+name+" ", dial(t, rear.ingress(), name).call(get, ""))
		require.Equal(t, "left-on-rear "+rear.host()+" left", dial(t, rear.ingress(), "").call(get, "left"))
		require.Equal(t, "Unavailable: "+name+" is not on this node", dial(t, center.ingress(), name).call(get, ""))
		require.Contains(t, dial(t, rear.ingress(), "gateway").call(get, ""), "Unavailable")
	})

	// The service goes: callers are told by their own gateway.
	rear.set(down(left, "StopOffer"))
	byAuthority.becomes(get, "", "Unavailable: gateway of center says why")
	byPath.becomes(get, "", "Unavailable: gateway of center says why")
	local.becomes(get, "", "Unavailable: gateway of rear says why")

	// It comes back on the other node: endpoints move, clusters stay.
	moved := native(climate, "left", serveTCP(t, "left-on-center"))
	center.set(moved)
	byAuthority.becomes(get, "", "left-on-center "+name+" ")
	local.becomes(get, "", "left-on-center "+name+" ")

	// On both: the local one shadows the other (CAR-21).
	again := native(climate, "left", serveTCP(t, "again-on-rear"))
	again.Generation = 2
	rear.set(again)
	local.becomes(get, "", "again-on-rear "+name+" ")
	require.Equal(t, "left-on-center "+name+" ", byAuthority.call(get, ""))

	// Gone for good.
	rear.remove(name)
	center.remove(name)
	byAuthority.becomes(get, "", "NotFound: no service "+name+" in the mesh")
	byPath.becomes(get, "", "Unimplemented: no such interface in the mesh")
	require.Zero(t, p.Counters()["xds_nacks"])
}

// CAR-40, 41, 42, 43: A on central calls B on the satellite; B is deployed on central as
// well, then removed from the satellite; C, of the same interface on both, never sees a
// request for B, and A notices nothing.
func TestEnvoyScenario(t *testing.T) {
	p := startPlane(t, t.TempDir())
	central, satellite := p.join(t, "central", "127.0.0.1"), p.join(t, "satellite", "127.0.0.2")
	central.startEnvoy()
	satellite.startEnvoy()
	c := native(climate, "c", serveTCP(t, "C"))
	central.sync(c)
	satellite.sync(native(climate, "b", serveTCP(t, "B on satellite")), native(climate, "c", serveTCP(t, "C")))
	name, get := "b."+lower(climate), "/"+climate+"/Get"
	a := dial(t, central.egress(), name)
	a.becomes(get, "", "B on satellite "+name+" ")
	for range 50 {
		require.Equal(t, "B on satellite "+name+" ", a.call(get, ""))
	}

	central.set(native(climate, "b", serveTCP(t, "B on central")))
	for got := ""; got != "B on central "+name+" "; {
		got = a.call(get, "")
		require.Contains(t, []string{"B on satellite " + name + " ", "B on central " + name + " "}, got)
	}
	satellite.remove(name)
	for range 50 {
		require.Equal(t, "B on central "+name+" ", a.call(get, ""))
	}
	require.Zero(t, p.Counters()["xds_nacks"])
}

// The first instance is what a path reaches, until it goes; where several remain,
// the answer is the list.
func TestEnvoyDefaultInstance(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	a.startEnvoy()
	a.sync(native(climate, "left", serveTCP(t, "left")))
	a.acked()
	c, get := dial(t, a.egress(), ""), "/"+climate+"/Get"
	c.becomes(get, "", "left left."+lower(climate)+" left")
	a.set(native(climate, "right", serveTCP(t, "right")), native(climate, "100%", serveTCP(t, "third")))
	require.Equal(t, "third "+a.host()+" 100%", func() string {
		c.becomes(get, "100%", "third "+a.host()+" 100%")
		return c.call(get, "100%")
	}())
	require.Equal(t, "left left."+lower(climate)+" left", c.call(get, ""))
	a.remove("left." + lower(climate))
	c.becomes(get, "", "FailedPrecondition: cabin.climate.v1.Climate has several instances and no default; "+
		"name one by authority or by carisma-instance: 100_25.cabin.climate.v1.climate, right.cabin.climate.v1.climate")
	a.remove("right." + lower(climate))
	c.becomes(get, "", "third 100_25."+lower(climate)+" 100%")
}

// A bad resource is set apart, whatever Envoy says of the others, and stays so for
// the next stream.
func TestEnvoyBadResource(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	envoy := a.startEnvoy()
	a.sync(native(trip, "", serveTCP(t, "trip")))
	a.acked()

	// Valid by its rules, but Envoy wants an address where this has a name.
	bad, err := xds.NewResource(resourcev3.ClusterType, &clusterv3.Cluster{
		Name: "bad", ConnectTimeout: durationpb.New(1e9),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: "bad", Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "no-address", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 1},
				}}},
			}}}},
		}}},
	})
	require.NoError(t, err)
	p.cache.Apply(1, []xds.Update{{Node: a.id.ID, Set: []*xds.Resource{bad}}})
	apart := func() bool {
		for _, proxy := range p.cache.Proxies() {
			for _, typ := range proxy.Types {
				if len(typ.Nacks) > 0 {
					require.Equal(t, resourcev3.ClusterType, typ.Type)
					require.Len(t, typ.Nacks, 1)
					require.Contains(t, typ.Nacks["bad"].Reason, "no-address")
					return true
				}
			}
		}
		return false
	}
	eventually(t, "the bad cluster is set apart", apart)

	// What comes after it applies.
	a.set(native(climate, "left", serveTCP(t, "left")))
	c := dial(t, a.egress(), "left."+lower(climate))
	c.becomes("/"+climate+"/Get", "", "left left."+lower(climate)+" ")

	// A proxy that starts anew gets everything but the bad one.
	nacks := p.Counters()["xds_nacks"]
	envoy.kill()
	a.startEnvoy()
	c.becomes("/"+climate+"/Get", "", "left left."+lower(climate)+" ")
	dial(t, a.egress(), "").becomes("/"+trip+"/Get", "", "trip default."+lower(trip)+" ")
	require.True(t, apart())
	require.Equal(t, nacks, p.Counters()["xds_nacks"])
}

// A bad resource among many: all others reach the proxy.
func TestEnvoyBadResourceAtStart(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	bad, err := xds.NewResource(resourcev3.ClusterType, &clusterv3.Cluster{
		Name: "bad", ConnectTimeout: durationpb.New(1e9), LbPolicy: clusterv3.Cluster_CLUSTER_PROVIDED,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
	})
	require.NoError(t, err)
	address := serveTCP(t, "one")
	p.cache.Apply(1, []xds.Update{{Node: a.id.ID, Set: []*xds.Resource{bad}}})
	var all []*meshv1.ServiceInstance
	for i := range 20 {
		all = append(all, native(climate, fmt.Sprint("i", i), address))
	}
	a.sync(all...)
	a.startEnvoy()
	for i := range 20 {
		name := fmt.Sprintf("i%d.%s", i, lower(climate))
		dial(t, a.egress(), name).becomes("/"+climate+"/Get", "", "one "+name+" ")
	}
	require.Equal(t, uint64(1), p.Counters()["xds_resources_set_apart"])
}

// CAR-3: a second proxy with the same id is refused and counted, the first goes on.
func TestEnvoySecondProxy(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	a.startEnvoy()
	a.sync(native(trip, "", serveTCP(t, "trip")))
	a.acked()
	a.startEnvoy()
	eventually(t, "the second proxy is refused", func() bool { return p.Counters()["xds_streams_refused"] > 0 })
	require.Equal(t, uint64(1), p.Counters()["xds_streams"])
	dial(t, a.egress(), "").becomes("/"+trip+"/Get", "", "trip default."+lower(trip)+" ")
}

// CAR-50: the control plane is wiped while calls go on. The proxies keep what they
// have until every node was heard again; not one call fails.
func TestEnvoyWipedControlPlane(t *testing.T) {
	state := t.TempDir()
	p := startPlane(t, state)
	center, rear := p.join(t, "center", "127.0.0.1"), p.join(t, "rear", "127.0.0.2")
	center.startEnvoy()
	rear.startEnvoy()
	left := native(climate, "left", serveTCP(t, "left"))
	center.sync()
	rear.sync(left)
	c := dial(t, center.egress(), "")
	c.becomes("/"+climate+"/Get", "", "left left."+lower(climate)+" left")

	stop, failed := make(chan struct{}), make(chan string, 1)
	ended := make(chan int)
	go func() {
		calls := 0
		defer func() { ended <- calls }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := c.call("/"+climate+"/Get", ""); got != "left left."+lower(climate)+" left" {
				failed <- got
				return
			}
			calls++
		}
	}()

	address := p.Addr().String()
	p.stop()
	require.NoError(t, os.Remove(filepath.Join(state, storeName)))
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	p = startPlaneOn(t, state, listener)
	// The node of the caller is back at once, the other one late.
	for _, a := range []*agent{center, rear} {
		a.plane, a.req.ResumeId, a.req.ResumeEpoch = p, a.id.ID, a.id.Epoch
		before := a.id
		a.register()
		require.Equal(t, before, a.id, "ids survive a lost store")
		if a == center {
			a.sync()
			eventually(t, "the proxy of center is back", func() bool { return p.Counters()["xds_streams"] > 0 })
		} else {
			a.sync(left)
		}
	}
	eventually(t, "the registry settles", func() bool { return p.registry.Snapshot().Settled })
	// A change afterwards arrives.
	rear.set(native(trip, "", serveTCP(t, "trip")))
	dial(t, center.egress(), "").becomes("/"+trip+"/Get", "", "trip default."+lower(trip)+" ")
	close(stop)
	require.NotZero(t, <-ended)
	select {
	case got := <-failed:
		require.Fail(t, "a call failed", got)
	default:
	}
}
