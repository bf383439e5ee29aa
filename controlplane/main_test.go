package controlplane

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// plane is a control plane that runs for a test.
type plane struct {
	*Server
	state string
	conn  *grpc.ClientConn
	stop  func()
}

func startPlane(tb testing.TB, state string) *plane {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	return startPlaneOn(tb, state, listener)
}

func startPlaneOn(tb testing.TB, state string, listener net.Listener) *plane {
	tb.Helper()
	return startPlaneWith(tb, Config{Listener: listener, State: state, Lease: 10 * patience})
}

func startPlaneWith(tb testing.TB, cfg Config) *plane {
	tb.Helper()
	if cfg.Listener == nil {
		cfg.Listen = netip.MustParseAddrPort("127.0.0.1:0")
	}
	s, err := New(tb.Context(), cfg)
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	conn, err := grpc.NewClient("passthrough:///"+s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			conn.Close()
			cancel()
			require.NoError(tb, <-done)
		}
	}
	tb.Cleanup(stop)
	return &plane{Server: s, state: cfg.State, conn: conn, stop: stop}
}

// agent plays the gateway's side of a node.
type agent struct {
	tb    testing.TB
	plane *plane
	req   *meshv1.RegisterRequest
	id    api.Identity
	ads   string // where its proxy finds the control plane; "" for straight
}

func (p *plane) join(tb testing.TB, name, address string) *agent {
	tb.Helper()
	dir := tb.TempDir()
	a := &agent{tb: tb, plane: p, req: &meshv1.RegisterRequest{
		Name: name, Address: address,
		Proxy: &meshv1.ProxyEndpoints{
			IngressAddress: address, IngressPort: uint32(freePort(tb, address)),
			EgressAddress: address, EgressPort: uint32(freePort(tb, address)),
			EgressSocket: filepath.Join(dir, "egress.sock"), GatewaySocket: filepath.Join(dir, "gw.sock"),
		},
	}}
	a.register()
	return a
}

func (a *agent) register() {
	a.tb.Helper()
	resp, err := meshv1.NewNodeRegistryClient(a.plane.conn).Register(a.tb.Context(), a.req)
	require.NoError(a.tb, err)
	a.id = api.Identity{ID: resp.GetId(), Epoch: resp.GetEpoch()}
	a.keepAlive()
}

// keepAlive holds the lease until the test or the control plane ends.
func (a *agent) keepAlive() {
	a.tb.Helper()
	stream, err := meshv1.NewNodeRegistryClient(a.plane.conn).KeepAlive(a.ctx())
	require.NoError(a.tb, err)
	go func() {
		ticker := time.NewTicker(api.HeartbeatInterval)
		defer ticker.Stop()
		for {
			if stream.Send(&meshv1.KeepAliveRequest{}) != nil {
				return
			}
			if _, err := stream.Recv(); err != nil {
				return
			}
			<-ticker.C
		}
	}()
}

func (a *agent) ctx() context.Context { return api.NewOutgoing(a.tb.Context(), a.id) }

func (a *agent) services() meshv1.ServiceRegistryClient {
	return meshv1.NewServiceRegistryClient(a.plane.conn)
}

func (a *agent) sync(services ...*meshv1.ServiceInstance) {
	a.tb.Helper()
	resp, err := a.services().Synchronize(a.ctx(), &meshv1.SynchronizeRequest{Services: services})
	require.NoError(a.tb, err)
	require.Empty(a.tb, resp.GetRefusals())
}

func (a *agent) set(services ...*meshv1.ServiceInstance) {
	a.tb.Helper()
	resp, err := a.services().Update(a.ctx(), &meshv1.UpdateRequest{Set: services})
	require.NoError(a.tb, err)
	require.Empty(a.tb, resp.GetRefusals())
}

func (a *agent) remove(names ...string) {
	a.tb.Helper()
	resp, err := a.services().Update(a.ctx(), &meshv1.UpdateRequest{Remove: names})
	require.NoError(a.tb, err)
	require.Empty(a.tb, resp.GetRefusals())
}

func (a *agent) egress() string {
	return netip.AddrPortFrom(netip.MustParseAddr(a.req.GetProxy().GetEgressAddress()), uint16(a.req.GetProxy().GetEgressPort())).String()
}

func (a *agent) ingress() string {
	return netip.AddrPortFrom(netip.MustParseAddr(a.req.GetProxy().GetIngressAddress()), uint16(a.req.GetProxy().GetIngressPort())).String()
}

func freePort(tb testing.TB, address string) uint16 {
	tb.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	require.NoError(tb, err)
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

// native is a gRPC service at an address.
func native(iface, instance, address string) *meshv1.ServiceInstance {
	return &meshv1.ServiceInstance{
		Name: api.MeshName(iface, instance), Interface: iface, Instance: instance, Address: address,
		Origin: &meshv1.Origin{Protocol: meshv1.Protocol_GRPC},
		State:  meshv1.InstanceState_INSTANCE_UP,
	}
}

// bridged is a SOME/IP instance behind the gateway of a node.
func bridged(a *agent, iface, instance string, id uint32) *meshv1.ServiceInstance {
	s := native(iface, instance, "unix:"+a.req.GetProxy().GetGatewaySocket())
	s.Origin = &meshv1.Origin{Protocol: meshv1.Protocol_SOMEIP, Network: "net", ServiceId: 0x1234, InstanceId: id, Major: 1}
	return s
}

func down(s *meshv1.ServiceInstance, reason string) *meshv1.ServiceInstance {
	s.State, s.Reason = meshv1.InstanceState_INSTANCE_DOWN, reason
	s.Generation++
	return s
}
