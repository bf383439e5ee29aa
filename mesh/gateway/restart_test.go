package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// bridged starts the vehicle with an ECU and returns a call of it through center.
func bridged(t *testing.T) (*vehicle, func(context.Context) error) {
	t.Helper()
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	ecu := v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	offerClimate(t, ecu, "left", 1)
	call := describe(climatev1.NewClimateClient(dial(t, v.center.egress)), grpc.CallAuthority(leftName))
	eventually(t, call)
	return v, call
}

// CAR-50: while the control plane is away nothing changes, and an Envoy that is
// restarted then gets what its gateway kept.
func TestControlPlaneAway(t *testing.T) {
	v, call := bridged(t)
	before := v.center.status(t)
	require.NoError(t, v.stopCentral())
	require.Eventually(t, func() bool { return !v.center.status(t).ControlPlane.Connected }, patience, time.Millisecond)
	for range 100 {
		require.NoError(t, call(t.Context()))
	}
	require.NoError(t, syscall.Kill(before.Envoy.PID, syscall.SIGKILL))
	require.Eventually(t, func() bool { return v.center.status(t).Envoy.PID != before.Envoy.PID }, patience, time.Millisecond)
	eventually(t, call)
	require.False(t, v.center.status(t).ControlPlane.Connected)

	v.startCentral(t)
	require.Eventually(t, func() bool {
		s := v.center.status(t)
		return s.ControlPlane.Connected && s.ADS.Connected
	}, patience, time.Millisecond)
	after := v.center.status(t)
	require.Equal(t, before.NodeID, after.NodeID, "CAR-10")
	for range 100 {
		require.NoError(t, call(t.Context()))
	}
}

// An Envoy outlives its gateway and is adopted by the next run of it (CAR-10, 11).
func TestEnvoyOutlivesItsGateway(t *testing.T) {
	v, call := bridged(t)
	before := v.center.status(t)
	v.center.keep = true
	require.NoError(t, v.center.stop())
	v.center.start(t) // drops the first one, which ran without keep
	first := v.center.status(t)
	require.NotEqual(t, before.Envoy.PID, first.Envoy.PID)
	require.Equal(t, before.NodeID, first.NodeID)
	eventually(t, call)

	t.Cleanup(func() { _ = syscall.Kill(first.Envoy.PID, syscall.SIGKILL) })
	require.NoError(t, v.center.stop())
	for range 100 {
		require.NoError(t, call(t.Context()), "without center's gateway")
	}
	v.center.keep = false
	v.center.start(t)
	second := v.center.status(t)
	require.Equal(t, first.Envoy.PID, second.Envoy.PID)
	require.True(t, second.Envoy.Adopted)
	for range 100 {
		require.NoError(t, call(t.Context()))
	}
}

func TestEnvoyIsRestarted(t *testing.T) {
	v, call := bridged(t)
	pid := v.center.status(t).Envoy.PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, call)
	require.NotEqual(t, pid, v.center.status(t).Envoy.PID)
}

// A network whose address is not there concerns nobody else, and says why.
func TestNetworkIsNotThere(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	late := v.node(t, "late", "satellite", "127.78.0.3", `
networks:
  - {name: nowhere, address: 192.0.2.1/24, client_ids: 0x1200-0x12ff}
`)
	late.start(t)
	s := late.status(t)
	require.False(t, s.Networks[0].Up)
	require.NotEmpty(t, s.Networks[0].Reason)
	trip := tripv1.NewTripComputerClient(dial(t, late.egress))
	eventually(t, func(ctx context.Context) error {
		_, err := trip.Leg(ctx, &tripv1.TripComputerLegRequest{Name: "x"})
		return err
	})
	require.Eventually(t, func() bool {
		s = late.status(t)
		return len(s.Instances) == 1 && s.Instances[0].Exposures[0].State == "failed"
	}, patience, time.Millisecond)
	require.Contains(t, s.Instances[0].Exposures[0].Reason, "not open")
}

func TestStateDirectoryHasOneGateway(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	node, err := config.Load(v.center.file)
	require.NoError(t, err)
	err = gateway.Run(t.Context(), node, gateway.Options{})
	require.ErrorContains(t, err, "in use by another gateway")
}

func TestWithoutEnvoy(t *testing.T) {
	t.Setenv(envoy.Variable, "/nowhere/envoy")
	node := &config.Node{Name: "rear", State: t.TempDir(), Egress: config.Egress{Socket: "/tmp/egress.sock"}, Envoy: config.Envoy{Path: "envoy"}}
	err := gateway.Run(t.Context(), node, gateway.Options{})
	var missing *envoy.ProgramError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "/nowhere/envoy")
}

// CAR-50: a gateway that starts while the control plane is away knows the mesh from
// its last run: what it exposed is there again at once, and what is on its network
// is called through it. So it is with an Envoy that starts with it, and with one
// that outlived it.
func TestRestartWhileControlPlaneAway(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	kill := v.rear.spawn(t)
	offerClimate(t, v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff}), "left", 1)
	cluster := v.host(t, "127.78.1.3", runtime.Range{First: 0x1500, Last: 0x15ff})
	client, err := cluster.Client(runtime.InstanceKey{Service: 0x5001, Instance: 1, Major: 1})
	require.NoError(t, err)
	defer client.Close()
	w := payload.NewWriter(nil)
	w.String(4, payload.PlainText, "commute")
	leg, err := w.Payload()
	require.NoError(t, err)
	exposed := func(ctx context.Context) error {
		resp, err := client.Call(ctx, 0x0001, false, leg)
		if err == nil && resp.Code != someip.OK {
			err = fmt.Errorf("return code %v", resp.Code)
		}
		return err
	}
	left := grpc.CallAuthority(leftName)
	imported := func(h *hpc) func(context.Context) error {
		return describe(climatev1.NewClimateClient(dial(t, h.egress)), left)
	}
	there := func() {
		t.Helper()
		eventually(t, exposed)
		eventually(t, imported(v.center))
		eventually(t, imported(v.rear))
	}
	there()
	require.Eventually(t, func() bool { return kept(t, v.rear) }, patience, 10*time.Millisecond)

	require.NoError(t, v.stopCentral())
	require.Eventually(t, func() bool { return !v.rear.status(t).ControlPlane.Connected }, patience, time.Millisecond)
	before := v.rear.status(t).Envoy.PID
	kill()
	kill = v.rear.spawn(t)
	require.Equal(t, before, v.rear.status(t).Envoy.PID, "it is adopted")
	there()
	kill()
	require.NoError(t, envoy.EndOrphan(v.rear.state))
	v.rear.spawn(t)
	require.NotEqual(t, before, v.rear.status(t).Envoy.PID)
	there()
	require.False(t, v.rear.status(t).ControlPlane.Connected)

	v.startCentral(t)
	require.Eventually(t, func() bool { return v.rear.status(t).ControlPlane.Connected }, patience, time.Millisecond)
	there()
}

// kept reports whether a gateway has written what it knows of both services: their
// entries, and their endpoints for Envoy, at center's address and its own socket.
func kept(t *testing.T, h *hpc) bool {
	t.Helper()
	var all meshv1.WatchServicesResponse
	require.NoError(t, proto.Unmarshal(content(t, h, "mesh.kept"), &all))
	up := 0
	for _, s := range all.GetSet() {
		if s.GetService().GetState() == meshv1.InstanceState_INSTANCE_UP {
			up++
		}
	}
	ads := content(t, h, "ads.kept")
	return up == 2 && bytes.Contains(ads, []byte("127.78.0.1")) && bytes.Contains(ads, []byte("127.78.0.2")) &&
		bytes.Count(ads, []byte("gateway.sock")) == 3 // of the cluster, at the egress and at the ingress
}

func content(t *testing.T, h *hpc, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.state, file))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return data
}
