package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
	"carisma.dev/gateway/vehicles/run"
)

// dial connects from a host of the vehicle.
func dial(t *testing.T, r *run.Runner, host, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := r.Host(host).NewClient(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// What runs where: the central HPC has control plane, gateway and one proxy
// (CAR-1), a satellite gateway and one proxy (CAR-2), whatever the number of
// services (CAR-3), none of them beside a service (CAR-4).
func TestProcesses(t *testing.T) {
	peers.Need(t, peers.Envoy)
	needNamespaces(t)
	r := up(t, run.Options{Namespaces: true})
	waitUp(t, r, "center")
	require.Equal(t, []string{"cabin-trip", "carisma central", "carisma node", "envoy"}, processes(t, r, "center"))
	require.Equal(t, []string{"carisma node", "envoy"}, processes(t, r, "rear"))

	// CAR-2: a satellite opens neither registry nor xDS; on the backbone it has its
	// ingress alone, and so has central but for the control plane and the native
	// service, which is its owner's matter.
	require.Equal(t, []string{"10.77.0.2:15001"}, listening(t, r, "rear", "10.77.0.0/24"))
	require.Equal(t, []string{"10.77.0.1:15001", "10.77.0.1:15010", "10.77.0.1:50051"}, listening(t, r, "center", "10.77.0.0/24"))
}

// processes returns the programs in the namespace of a host, with the command of
// ours.
func processes(t *testing.T, r *run.Runner, host string) []string {
	t.Helper()
	var own string
	require.NoError(t, r.Host(host).Do(func() (err error) {
		own, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}))
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var names []string
	for _, dir := range dirs {
		ns, err := os.Readlink(dir + "/ns/net")
		if err != nil || ns != own || dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		line, err := os.ReadFile(dir + "/cmdline")
		require.NoError(t, err)
		argv := strings.Split(string(line), "\x00")
		name := filepath.Base(argv[0])
		if name == "carisma" {
			name += " " + argv[1]
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listening returns the TCP addresses in a subnet on which programs of a host
// listen.
func listening(t *testing.T, r *run.Runner, host, subnet string) []string {
	t.Helper()
	var table []byte
	require.NoError(t, r.Host(host).Do(func() (err error) {
		table, err = os.ReadFile("/proc/thread-self/net/tcp")
		return err
	}))
	const listen = "0A"
	var all []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != listen {
			continue
		}
		address := parseProcAddress(t, fields[1])
		if address.Addr().IsUnspecified() || netip.MustParsePrefix(subnet).Contains(address.Addr()) {
			all = append(all, address.String())
		}
	}
	slices.Sort(all)
	return all
}

// parseProcAddress reads an address as /proc/net/tcp has it on a little-endian
// machine: 0100007F:1F90.
func parseProcAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, ok := strings.Cut(text, ":")
	require.True(t, ok, text)
	h, err := strconv.ParseUint(host, 16, 32)
	require.NoError(t, err)
	p, err := strconv.ParseUint(port, 16, 16)
	require.NoError(t, err)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(h), byte(h >> 8), byte(h >> 16), byte(h >> 24)}), uint16(p))
}

// Clients know their own egress listener and nothing else (CAR-30), several use
// one service at a time (CAR-29), and they do not ask a registry: with the control
// plane killed they call on (CAR-46). The registries speak gRPC (CAR-36).
func TestClients(t *testing.T) {
	peers.Need(t, peers.Envoy)
	r := up(t, run.Options{})
	waitUp(t, r, "center")
	waitUp(t, r, "rear")

	registry := meshv1.NewNodeRegistryClient(dial(t, r, "center", r.ControlPlane()))
	nodes, err := registry.ListNodes(t.Context(), &meshv1.ListNodesRequest{})
	require.NoError(t, err)
	require.Len(t, nodes.GetNodes(), 2)

	callAll := func() {
		var group errgroup.Group
		for _, host := range []string{"center", "rear", "center", "rear"} {
			conn := dial(t, r, host, r.Egress(host).String())
			group.Go(func() error { return callEverything(t.Context(), conn) })
		}
		require.NoError(t, group.Wait())
	}
	callAll()
	require.NoError(t, r.Process("center/control-plane").Kill())
	callAll()
}

// callsEach is how often each client calls each service.
const callsEach = 50

// callEverything is the same for a client on any HPC.
func callEverything(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	climate, trip := climatev1.NewClimateClient(conn), tripv1.NewTripComputerClient(conn)
	for range callsEach {
		d, err := climate.Describe(ctx, &climatev1.ClimateDescribeRequest{}, grpc.CallAuthority("right.cabin.climate.v1.climate"))
		if err != nil {
			return err
		}
		if d.GetZone() != "right" {
			return fmt.Errorf("zone %q", d.GetZone())
		}
		leg, err := trip.Leg(ctx, &tripv1.TripComputerLegRequest{Name: "commute"})
		if err != nil {
			return err
		}
		if leg.GetKilometres() != 42.5 {
			return errors.New("another leg")
		}
	}
	return nil
}

// A path needs no interface definition: a gRPC service that no file of the vehicle
// describes is reached from another HPC (CAR-45).
func TestPathWithoutInterface(t *testing.T) {
	envoy := peers.Need(t, peers.Envoy)[0]
	dir := shortTempDir(t)
	socket := filepath.Join(dir, "plain.sock")
	v, err := vehicles.Load(cabin)
	require.NoError(t, err)
	node := v.Host("center").Node
	node.Services = append(node.Services, config.Service{Interface: "bench.v1.Plain", Instance: "default", Address: "unix:" + socket})
	v.Components = append(v.Components, vehicles.Component{
		Name: "plain", Host: "center", Command: []string{program(t, "bench-peer"), "grpc", socket},
	})
	r, err := run.New(v, run.Options{Dir: dir, Carisma: program(t, "carisma"), Envoy: envoy})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		if t.Failed() {
			showLogs(t, dir)
		}
	})
	require.NoError(t, r.Start())
	plain := benchv1.NewPlainClient(dial(t, r, "rear", r.Egress("rear").String()))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, err := plain.Echo(ctx, &benchv1.PlainEchoRequest{Value: 42}, grpc.WaitForReady(true))
		require.NoError(c, err)
		require.EqualValues(c, 42, out.GetValue())
	}, upTimeout, 50*time.Millisecond)
}
