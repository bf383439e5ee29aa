package controlplane

import (
	"io"
	"net"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/xds"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// cable is a TCP way to an address that can be cut: all that runs over it breaks.
type cable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cable{Listener: l}
	c.wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			c.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				c.wg.Go(func() {
					_, _ = io.Copy(way[0], way[1])
					way[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.cut()
		c.wg.Wait()
	})
	return c
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// nacks returns what carisma status and carisma why are told: the resources that
// proxies refused, with their reasons.
func (p *plane) nacks(t *testing.T) map[string]string {
	t.Helper()
	resp, err := meshv1.NewStatusClient(p.conn).GetProxies(t.Context(), &meshv1.GetProxiesRequest{})
	require.NoError(t, err)
	all := map[string]string{}
	for _, proxy := range resp.GetProxies() {
		for _, typ := range proxy.GetTypes() {
			for _, nack := range typ.GetNacks() {
				require.NotNil(t, nack.GetSince())
				all[nack.GetResource()] = nack.GetReason()
			}
		}
	}
	return all
}

// Bad endpoints of one service are set apart: calls to it go on with what the proxy
// had, others change and come. It stays so when the proxy's stream breaks while the
// proxy lives on, until the service changes.
func TestEnvoyBadEndpoints(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	way := newCable(t, p.Addr().String())
	a.ads = way.Addr().String()
	a.startEnvoy()
	left := native(climate, "left", serveTCP(t, "left"))
	a.sync(left, native(trip, "", serveTCP(t, "trip")))
	a.acked()

	name := "left." + lower(climate)
	bad, err := xds.NewResource(resourcev3.EndpointType, &endpointv3.ClusterLoadAssignment{
		ClusterName: name + "/local",
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "no-address", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 1},
				}}},
			}},
		}}}},
	})
	require.NoError(t, err)
	p.cache.Apply(p.registry.Snapshot().Version, []xds.Update{{Node: a.id.ID, Set: []*xds.Resource{bad}}})
	eventually(t, "the endpoints are set apart", func() bool { return len(p.nacks(t)) > 0 })
	require.Len(t, p.nacks(t), 1)
	require.Contains(t, p.nacks(t)[name+"/local"], "no-address", "named as carisma why looks for it")

	others := func(instance string) {
		t.Helper()
		a.set(native(climate, instance, serveTCP(t, instance)))
		dial(t, a.egress(), instance+"."+lower(climate)).becomes("/"+climate+"/Get", "", instance+" "+instance+"."+lower(climate)+" ")
		dial(t, a.egress(), "").becomes("/"+trip+"/Get", "", "trip default."+lower(trip)+" ")
		dial(t, a.egress(), name).becomes("/"+climate+"/Get", "", "left "+name+" ")
	}
	others("right")

	refused, streams := p.Counters()["xds_nacks"], p.Counters()["xds_streams"]
	way.cut()
	eventually(t, "the proxy is back", func() bool { return p.Counters()["xds_streams"] > streams })
	others("roof")
	require.Len(t, p.nacks(t), 1)
	require.Equal(t, refused, p.Counters()["xds_nacks"], "it is not tried again")

	// The service changes, and all is well.
	moved := native(climate, "left", serveTCP(t, "moved"))
	moved.Generation = left.GetGeneration() + 1
	a.set(moved)
	dial(t, a.egress(), name).becomes("/"+climate+"/Get", "", "moved "+name+" ")
	require.Empty(t, p.nacks(t))
}
