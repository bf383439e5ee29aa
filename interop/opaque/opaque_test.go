// Package opaque_test shows that a service which no file of the vehicle describes
// crosses two HPCs: a vsomeip service on one HPC's network, called by grpcurl by ids
// and bytes and by a vsomeip client on the other HPC's network under other ids.
package opaque_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	// The service on rear's network is 6001.0001, and on front's 7001.0002.
	meshName = "6001-0001-v1.carisma.v1.opaque"
)

func newVehicle() *vehicles.Vehicle {
	addr := netip.MustParseAddr
	sd := func(group string) *config.SD {
		s := new(config.SD)
		config.Defaults(s)
		s.Group = addr(group)
		return s
	}
	ids := func(lo, hi uint16) config.Range[uint16] { return config.Range[uint16]{Min: lo, Max: hi} }
	byHand := func(name, host, network string, a ...string) vehicles.Component {
		return vehicles.Component{Name: name, Host: host, Network: network, Command: append([]string{"carisma", "someip"}, a...), Manual: true}
	}
	return &vehicles.Vehicle{
		Name: "opaque",
		Networks: []vehicles.Network{
			{Name: "backbone", Subnet: netip.MustParsePrefix("10.79.0.0/24")},
			{Name: "rear-ecu", Subnet: netip.MustParsePrefix("10.79.1.0/24"), SD: sd("224.244.79.1")},
			{Name: "front-ecu", Subnet: netip.MustParsePrefix("10.79.2.0/24"), SD: sd("224.244.79.2")},
		},
		Hosts: []vehicles.Host{
			{
				Name: "front", Role: config.Central,
				Addresses: map[string]netip.Addr{"backbone": addr("10.79.0.1"), "front-ecu": addr("10.79.2.1")},
				Node: &vehicles.Node{Networks: []vehicles.NodeNetwork{{
					Name: "front-ecu", ClientIDs: ids(0x1200, 0x12FF), Ports: ids(30700, 30799),
					Expose: &config.Expose{SOMEIP: []config.ExposedSOMEIP{{
						Network: "rear-ecu", Service: 0x6001, Instance: 1, As: config.SOMEIPIDs{Service: 0x7001, Instance: 2},
					}}},
				}}},
			},
			{
				Name: "rear", Role: config.Satellite,
				Addresses: map[string]netip.Addr{"backbone": addr("10.79.0.2"), "rear-ecu": addr("10.79.1.1")},
				Node: &vehicles.Node{Networks: []vehicles.NodeNetwork{{
					Name: "rear-ecu", ClientIDs: ids(0x1100, 0x11FF), Ports: ids(30600, 30699),
				}}},
			},
			{Name: "service-ecu", Addresses: map[string]netip.Addr{"rear-ecu": addr("10.79.1.2")}},
			{Name: "client-ecu", Addresses: map[string]netip.Addr{"front-ecu": addr("10.79.2.2")}},
			{Name: "bench", Addresses: map[string]netip.Addr{"rear-ecu": addr("10.79.1.3"), "front-ecu": addr("10.79.2.3")}},
		},
		Components: []vehicles.Component{
			{Name: "service", Host: "service-ecu", Network: "rear-ecu", Command: []string{"vsomeip/bench_service", "--burst", "20"}},
			{
				Name: "client", Host: "client-ecu", Network: "front-ecu", Manual: true,
				Command: []string{"vsomeip/bench_client", "--service", "0x7001", "--instance", "2", "--calls", "200", "--warmup", "1"},
			},
			byHand("call-rear", "bench", "rear-ecu", "call", "--hex", "6001.0001", "0001", "00 01 fe ff"),
			byHand("call-front", "bench", "front-ecu", "call", "--hex", "--tcp", "7001.0002", "0001", "00 01 fe ff"),
			byHand("find-front", "bench", "front-ecu", "find", "7001"),
			byHand("watch-front", "bench", "front-ecu", "watch", "--hex", "7001.0002", "0001", "-n", "20"),
		},
	}
}

// up runs the vehicle in namespaces.
func up(t *testing.T, envoy string) *run.Runner {
	t.Helper()
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	carisma, err := filepath.Abs("../../bin/carisma")
	require.NoError(t, err)
	if _, err := os.Stat(carisma); err != nil {
		t.Skip("make build builds it:", err)
	}
	dir, err := os.MkdirTemp("", "opaque-") //nolint:usetesting // its path must fit a Unix socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	r, err := run.New(newVehicle(), run.Options{Namespaces: true, Dir: dir, Carisma: carisma, Envoy: envoy})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		if t.Failed() {
			showLogs(t, dir)
		}
	})
	require.NoError(t, r.Start())
	return r
}

func showLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	require.NoError(t, err)
	for _, path := range logs {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		t.Logf("%s:\n%s", path, data[max(0, len(data)-4<<10):])
	}
}

// byHand runs a component to its end and returns what it wrote.
func byHand(t *testing.T, r *run.Runner, name string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.Process(name).Run(&out))
	return out.String()
}

// curl runs grpcurl, without any .proto, at a node's egress.
type curl struct{ program, socket string }

func (c curl) run(ctx context.Context, a ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, c.program, append([]string{"-plaintext", "-unix", "-authority", meshName}, a...)...).CombinedOutput()
	return string(out), err
}

func (c curl) call(ctx context.Context, rpc, request string) (string, error) {
	return c.run(ctx, "-d", request, c.socket, "carisma.v1.Opaque/"+rpc)
}

// Issue 4, item 3.
func TestUnknownService(t *testing.T) {
	paths := peers.Need(t, peers.Envoy, peers.Vsomeip, peers.Grpcurl)
	r := up(t, paths[0])
	grpc := curl{paths[2], r.EgressSocket("front")}
	payload := base64.StdEncoding.EncodeToString([]byte{0, 1, 0xFE, 0xFF})

	// grpcurl on front, by ids and bytes.
	var out string
	require.Eventually(t, func() bool {
		var err error
		out, err = grpc.call(t.Context(), "Call", `{"method":1,"payload":"`+payload+`"}`)
		return err == nil
	}, patience, 50*time.Millisecond, "never answered")
	require.Equal(t, payload, field(t, out, "payload"))
	out, err := grpc.call(t.Context(), "Describe", "{}")
	require.NoError(t, err, out)
	require.Equal(t, "rear-ecu", field(t, out, "network"))
	out, err = grpc.run(t.Context(), grpc.socket, "list")
	require.NoError(t, err, out)
	require.Contains(t, out, "carisma.v1.Opaque")
	out, err = grpc.run(t.Context(), grpc.socket, "describe", "carisma.v1.OpaqueCallRequest")
	require.NoError(t, err, out)
	require.Contains(t, out, "bytes payload = 2")

	// By hand, on both networks.
	require.Equal(t, "0001feff\n", byHand(t, r, "call-rear"))
	require.Equal(t, "0001feff\n", byHand(t, r, "call-front"))
	require.Contains(t, byHand(t, r, "find-front"), "carisma=front")

	// vsomeip calls vsomeip through two gateways and two proxies.
	var result struct{ Calls, Failed int }
	out = byHand(t, r, "client")
	require.NoError(t, json.Unmarshal([]byte(out), &result), out)
	require.Equal(t, 200, result.Calls)
	require.Zero(t, result.Failed)

	// Events: vsomeip to gRPC and to a client on the other network at once.
	watch := exec.CommandContext(t.Context(), grpc.program, "-plaintext", "-unix", "-authority", meshName, "-max-time", "20",
		"-d", `{"eventgroup":1,"events":[32769]}`, grpc.socket, "carisma.v1.Opaque/Watch")
	items, err := watch.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, watch.Start())
	legacy := make(chan string, 1)
	failed := make(chan error, 1)
	go func() {
		var events bytes.Buffer
		failed <- r.Process("watch-front").Run(&events)
		legacy <- events.String()
	}()
	decoder := json.NewDecoder(items)
	first := make(chan error, 1)
	go func() {
		var item map[string]any
		first <- decoder.Decode(&item)
	}()
	// Both watch when both get something: bursts go out until then.
	done := false
	for deadline := time.Now().Add(patience); !done && time.Now().Before(deadline); {
		out, err = grpc.call(t.Context(), "Call", `{"method":2}`)
		require.NoError(t, err, out)
		select {
		case err := <-failed:
			require.NoError(t, err)
			done = true
		case <-time.After(200 * time.Millisecond):
		}
	}
	require.True(t, done, "the client on the other network got no events")
	lines := strings.Split(strings.TrimSpace(<-legacy), "\n")
	require.Len(t, lines, 20)
	for _, line := range lines {
		require.Regexp(t, `^8001 [0-9a-f]{16}$`, line)
	}
	select {
	case err := <-first:
		require.NoError(t, err, "an item of the gRPC watch")
	case <-time.After(patience):
		require.Fail(t, "the gRPC watch got no events")
	}
	require.NoError(t, watch.Process.Kill())
	_ = watch.Wait() // killed

	// A service that goes is told as gone.
	require.NoError(t, r.Process("service").Stop())
	require.Eventually(t, func() bool {
		out, err = grpc.call(t.Context(), "Call", `{"method":1}`)
		return err != nil && strings.Contains(out, "Unavailable") && strings.Contains(out, "stopped by its server")
	}, patience, 50*time.Millisecond, "last: %s", out)
}

// field returns a text member of a JSON object.
func field(t *testing.T, text, name string) string {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	s, _ := v[name].(string)
	return s
}
