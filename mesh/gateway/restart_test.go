package gateway_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/gateway"
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
