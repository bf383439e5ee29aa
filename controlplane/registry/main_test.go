package registry

import (
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a registry with its store.
type bench struct {
	*Registry
	t     *testing.T
	store *store.Store
	probe Prober
	path  string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchProbe(t, nil)
}

func newBenchProbe(t *testing.T, probe Prober) *bench {
	t.Helper()
	b := &bench{t: t, probe: probe, path: filepath.Join(t.TempDir(), "store.db")}
	b.open()
	t.Cleanup(b.close)
	return b
}

func (b *bench) open() {
	b.t.Helper()
	s, err := store.Open(b.path)
	require.NoError(b.t, err)
	r, err := New(Config{Store: s, Probe: b.probe})
	require.NoError(b.t, err)
	b.Registry, b.store = r, s
}

func (b *bench) close() {
	b.Registry.Close()
	require.NoError(b.t, b.store.Close())
}

// restart is a restart of the control plane with its store.
func (b *bench) restart() {
	b.t.Helper()
	b.close()
	b.open()
}

func record(name string) store.Node {
	a := netip.MustParseAddr("10.0.0.1")
	if name != "center" {
		a = netip.MustParseAddr("10.0.0.2")
	}
	return store.Node{
		Name: name, Address: a,
		Proxy: &store.Proxy{
			Ingress: netip.AddrPortFrom(a, 15001), Egress: netip.MustParseAddrPort("127.0.0.1:15000"),
			EgressSocket: "/run/egress.sock", GatewaySocket: "/run/gateway.sock",
		},
		MachineID: "machine-of-" + name, BootID: "boot-1", BootTime: 1,
	}
}

func (b *bench) join(name string) api.Identity {
	b.t.Helper()
	id, resumed, err := b.Register(Registration{Node: record(name)})
	require.NoError(b.t, err)
	require.False(b.t, resumed)
	return id
}

func (b *bench) resume(name string, id api.Identity) (api.Identity, error) {
	got, _, err := b.Register(Registration{Node: record(name), Resume: id})
	return got, err
}

func (b *bench) sync(id api.Identity, services ...*meshv1.ServiceInstance) {
	b.t.Helper()
	refusals, err := b.Synchronize(id, services)
	require.NoError(b.t, err)
	require.Empty(b.t, refusals)
}

func (b *bench) refused(reason Reason, err error) {
	b.t.Helper()
	var e *Error
	require.ErrorAs(b.t, err, &e)
	require.Equal(b.t, reason, e.Reason, e.Message)
}

const climate = "cabin.climate.v1.Climate"

func grpcService(iface, instance string) *meshv1.ServiceInstance {
	return &meshv1.ServiceInstance{
		Name: api.MeshName(iface, instance), Interface: iface, Instance: instance,
		Address: "127.0.0.1:5000", Origin: &meshv1.Origin{Protocol: meshv1.Protocol_GRPC},
		State: meshv1.InstanceState_INSTANCE_UP,
	}
}

func someipService(iface, instance string) *meshv1.ServiceInstance {
	s := grpcService(iface, instance)
	s.Address = "unix:/run/gateway.sock"
	s.Origin = &meshv1.Origin{Protocol: meshv1.Protocol_SOMEIP, Network: "ecus", ServiceId: 0x1234, InstanceId: 1, Major: 1}
	return s
}

func (b *bench) instances(name string) []*Instance {
	if s := b.Snapshot().Services[name]; s != nil {
		return s.Instances
	}
	return nil
}
