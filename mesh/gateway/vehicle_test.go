package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"carisma.dev/gateway/controlplane"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

const patience = 20 * time.Second

const interfaces = "../../vehicles/cabin/interfaces"

// vehicle is two HPCs, center with the control plane and a native service, rear
// with an ECU network, each with an Envoy of its own.
type vehicle struct {
	dir          string
	controlPlane netip.AddrPort
	sdPort       uint16
	center, rear *hpc
	stopCentral  func() error
}

func (v *vehicle) startCentral(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", v.controlPlane.String())
	require.NoError(t, err)
	v.stopCentral = background(t, func(ctx context.Context) error {
		return controlplane.Run(ctx, controlplane.Config{
			Listener: l, State: filepath.Join(v.dir, "central"), Logger: logger(t).With("on", "central"),
		})
	})
}

type hpc struct {
	file   string
	egress string
	state  string
	keep   bool // leave Envoy running
	stop   func() error
}

func (h *hpc) status(t *testing.T) *gateway.Status {
	t.Helper()
	s, err := gateway.FetchStatus(t.Context(), h.state)
	require.NoError(t, err)
	return s
}

func envoyProgram(t *testing.T) string {
	t.Helper()
	path := os.Getenv(envoy.Variable)
	if path == "" {
		t.Skipf("%s names no Envoy: interop/peers/get.sh envoy gets one", envoy.Variable)
	}
	return path
}

func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return newLogger()
}

func newLogger() *slog.Logger {
	if os.Getenv("CARISMA_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// freePorts returns ports of an address that nobody listens on.
func freePorts(t *testing.T, address string, n int) []uint16 {
	t.Helper()
	var ports []uint16
	for range n {
		l, err := net.Listen("tcp", address+":0")
		require.NoError(t, err)
		defer l.Close()
		ports = append(ports, uint16(l.Addr().(*net.TCPAddr).Port))
	}
	return ports
}

// background runs f until the returned function is called, which returns its error.
func background(t *testing.T, f func(ctx context.Context) error) func() error {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func newVehicle(t *testing.T) *vehicle {
	t.Helper()
	envoyProgram(t)
	v := &vehicle{dir: t.TempDir(), sdPort: freePorts(t, "127.78.1.1", 1)[0]}
	v.controlPlane = netip.AddrPortFrom(netip.MustParseAddr("127.78.0.1"), freePorts(t, "127.78.0.1", 1)[0])
	v.startCentral(t)
	tripAddress := serveTrip(t, "127.78.0.1:0")
	v.center = v.node(t, "center", "central", "127.78.0.1", fmt.Sprintf(`
services:
  - interface: cabin.trip.v1.TripComputer
    address: %s
`, tripAddress))
	v.rear = v.node(t, "rear", "satellite", "127.78.0.2", fmt.Sprintf(`
networks:
  - name: rear-ecu
    address: 127.78.1.1/24
    sd: {group: 224.244.78.1, port: %d, initial_delay: 0ms-10ms, repetitions_base_delay: 20ms}
    client_ids: 0x1100-0x11ff
    ports: 30600-30699
`, v.sdPort))
	return v
}

// node writes a node file.
func (v *vehicle) node(t *testing.T, name, role, address, rest string) *hpc {
	t.Helper()
	root, err := filepath.Abs(interfaces)
	require.NoError(t, err)
	ports := freePorts(t, address, 2)
	h := &hpc{
		file: filepath.Join(v.dir, name+".yaml"), state: filepath.Join(v.dir, name),
		egress: fmt.Sprintf("%s:%d", address, ports[1]),
	}
	text := fmt.Sprintf(`
name: %s
role: %s
address: %s
ingress: {port: %d}
egress: {address: %s, port: %d}
control_plane: %s
state: %s
interfaces: [%s]
%s`, name, role, address, ports[0], address, ports[1], v.controlPlane, h.state, root, rest)
	require.NoError(t, os.WriteFile(h.file, []byte(text), 0o600))
	_, err = fmt.Fprintln(guard, h.state)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := envoy.EndOrphan(h.state); err != nil {
			t.Error(err)
		}
	})
	return h
}

// spawn runs the gateway in a process of its own, waits until it is ready and
// returns what kills it.
func (h *hpc) spawn(t *testing.T) (kill func()) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asGateway+"="+h.file)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	err = cmd.Start()
	w.Close()
	require.NoError(t, err)
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // else it has ended
		_ = cmd.Wait()         // it was killed
	})
	t.Cleanup(kill)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(patience)))
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err, "gateway %s is not ready", h.file)
	require.Equal(t, "ready\n", line)
	return kill
}

// start runs the gateway and waits until it is ready.
func (h *hpc) start(t *testing.T) {
	t.Helper()
	node, err := config.Load(h.file)
	require.NoError(t, err)
	ready := make(chan struct{})
	h.stop = background(t, func(ctx context.Context) error {
		return gateway.Run(ctx, node, gateway.Options{
			Logger: logger(t).With("on", node.Name), KeepEnvoy: h.keep, Ready: func() { close(ready) },
		})
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatalf("gateway %s is not ready; its Envoy: %s", node.Name, read(filepath.Join(h.state, "envoy.log")))
	}
}

// await receives, or ends the test: one that waits for ever cleans up nothing.
func await[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return v
}

func read(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// trip is the native service of center.
type trip struct {
	tripv1.UnimplementedTripComputerServer
}

func (trip) Leg(_ context.Context, in *tripv1.TripComputerLegRequest) (*tripv1.TripComputerLegResponse, error) {
	return &tripv1.TripComputerLegResponse{Kilometres: 42.5, Waypoints: []string{"Home", in.GetName()}}, nil
}

func (trip) WatchConsumption(_ *tripv1.TripComputerWatchConsumptionRequest, s grpc.ServerStreamingServer[tripv1.TripComputerWatchConsumptionResponse]) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for km := uint32(600); ; km-- {
		if err := s.Send(&tripv1.TripComputerWatchConsumptionResponse{Litres: 6.5, RangeKm: km}); err != nil {
			return err
		}
		select {
		case <-s.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func serveTrip(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.WaitForHandlers(true))
	tripv1.RegisterTripComputerServer(srv, trip{})
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() { srv.Stop(); wg.Wait() })
	return l.Addr().String()
}

// host is a host on the ECU network, with the stack that its programs use.
func (v *vehicle) host(t *testing.T, address string, clientIDs runtime.Range) *runtime.Network {
	t.Helper()
	return onNetwork(t, "rear-ecu", address, "224.244.78.1", v.sdPort, clientIDs)
}

func onNetwork(t *testing.T, name, address, group string, sdPort uint16, clientIDs runtime.Range) *runtime.Network {
	t.Helper()
	stack, err := runtime.Start(runtime.Config{
		Logger: logger(t).With("on", address),
		Networks: []runtime.NetworkConfig{{
			Name: name, Address: netip.MustParsePrefix(address + "/24"), ClientIDs: clientIDs,
			SD: runtime.SDConfig{
				Group: netip.MustParseAddr(group), Port: sdPort,
				InitialDelayMax: -1, RepetitionsBaseDelay: 20 * time.Millisecond,
			},
		}},
	})
	require.NoError(t, err)
	stop := sync.OnceValue(stack.Close)
	t.Cleanup(func() { _ = stop() })
	n := stack.Network(name)
	hosts.Store(n, stop)
	return n
}

var hosts sync.Map // *runtime.Network → func() error

// leave stops a host: its StopOffers leave.
func leave(t *testing.T, n *runtime.Network) {
	t.Helper()
	stop, _ := hosts.Load(n)
	require.NoError(t, stop.(func() error)())
}
