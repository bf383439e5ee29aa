package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// second is another HPC on rear's network.
func (v *vehicle) second(t *testing.T) *hpc {
	t.Helper()
	return v.node(t, "second", "satellite", "127.78.0.5", fmt.Sprintf(`
networks:
  - name: rear-ecu
    address: 127.78.1.5/24
    sd: {group: 224.244.78.1, port: %d, initial_delay: 0ms-10ms, repetitions_base_delay: 20ms}
    client_ids: 0x1200-0x12ff
    ports: 30700-30799
`, v.sdPort))
}

// owner returns the one node that owns an instance and the one on standby, once
// both see it.
func (v *vehicle) owner(t *testing.T, name string) (owner, standby string) {
	t.Helper()
	client := meshv1.NewServiceRegistryClient(dial(t, v.controlPlane.String()))
	require.Eventually(t, func() bool {
		r, err := client.ListServices(t.Context(), &meshv1.ListServicesRequest{})
		require.NoError(t, err)
		owner, standby = "", ""
		for _, s := range r.GetServices() {
			switch {
			case s.GetService().GetName() != name || s.GetService().GetState() != meshv1.InstanceState_INSTANCE_UP:
			case s.GetStandby():
				standby = s.GetNodeName()
			default:
				owner = s.GetNodeName()
			}
		}
		return owner != "" && standby != ""
	}, patience, time.Millisecond)
	return owner, standby
}

// exposure is the state of the trip computer on the network of a node.
func (h *hpc) exposure(t *testing.T) string {
	t.Helper()
	for _, in := range h.status(t).Instances {
		if in.Name == tripName && len(in.Exposures) > 0 {
			return in.Exposures[0].State
		}
	}
	return ""
}

// Issue 4, item 5: two gateways see one ECU and may expose one service. One owns,
// one stands by, in both directions; nothing is there twice, and what one's gateway
// exposes the other does not import. When the owner goes the other takes over.
func TestTwoGatewaysOneNetwork(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	second := v.second(t)
	second.start(t)
	gateways := map[string]*hpc{"rear": v.rear, "second": second}
	ecu := v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	offerClimate(t, ecu, "left", 1)

	// What service discovery shows: each instance once.
	cluster := v.host(t, "127.78.1.3", runtime.Range{First: 0x1500, Last: 0x15ff})
	var mu sync.Mutex
	seen := map[runtime.InstanceKey]runtime.Availability{}
	require.NoError(t, cluster.Observe(t.Context(),
		runtime.Filter{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor},
		func(a runtime.Availability) { mu.Lock(); seen[a.Key] = a; mu.Unlock() }))
	tripKey := runtime.InstanceKey{Service: 0x5001, Instance: 1, Major: 1}
	exposer := func() string {
		mu.Lock()
		defer mu.Unlock()
		a := seen[tripKey]
		switch {
		case !a.Up:
			return ""
		case a.Endpoints.UDP.Addr().String() == "127.78.1.5":
			return "second"
		}
		return "rear"
	}

	owner, standby := v.owner(t, leftName)
	call := describe(climatev1.NewClimateClient(dial(t, v.center.egress)), grpc.CallAuthority(leftName))
	eventually(t, call)
	var exposes string
	require.Eventually(t, func() bool {
		exposes = exposer()
		return exposes != "" && gateways[exposes].exposure(t) == "exposed" && gateways[other(exposes)].exposure(t) == "standby"
	}, patience, time.Millisecond)
	for name, h := range gateways {
		for _, in := range h.status(t).Instances {
			require.False(t, in.Name == tripName && in.From != "gRPC", "%s imports what the other exposes", name)
		}
	}

	// The owner of the ECU goes: the other has it already, and exposes what it did.
	// Then it comes back, takes no exposure away from the other, and no call fails
	// (CAR-43): the other serves the ECU until it does.
	require.NoError(t, gateways[owner].stop())
	eventually(t, call)
	require.Eventually(t, func() bool { return exposer() == standby }, patience, time.Millisecond, "its exposure, too")
	ended := steadily(call)
	gateways[owner].start(t)
	v.owner(t, leftName)
	require.Eventually(t, func() bool { return gateways[owner].exposure(t) == "standby" }, patience, time.Millisecond)
	require.Equal(t, standby, exposer())
	for range 100 {
		require.NoError(t, call(t.Context()))
	}
	require.NoError(t, ended())
}

// steadily calls until the returned function is called, which returns the first
// error of a call.
func steadily(call func(context.Context) error) (ended func() error) {
	stop, called := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				called <- nil
				return
			default:
			}
			if err := call(context.Background()); err != nil {
				called <- err
				return
			}
		}
	}()
	return func() error { close(stop); return <-called }
}

// Issue 4, item 5: an owner that is killed says nothing. Its lease ends, the standby
// takes over, and when the other comes back no call fails.
func TestOwnerKilled(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	second := v.second(t)
	gateways := map[string]*hpc{"rear": v.rear, "second": second}
	kill := map[string]func(){"rear": v.rear.spawn(t), "second": second.spawn(t)}
	offerClimate(t, v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff}), "left", 1)
	owner, _ := v.owner(t, leftName)
	call := describe(climatev1.NewClimateClient(dial(t, v.center.egress)), grpc.CallAuthority(leftName))
	eventually(t, call)
	kill[owner]()
	require.Eventually(t, func() bool {
		err := call(t.Context())
		if err != nil {
			require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		}
		return err == nil
	}, patience, time.Millisecond, "a lease, and what a busy machine adds")

	ended := steadily(call)
	gateways[owner].spawn(t) // it adopts the Envoy that it left
	v.owner(t, leftName)
	for range 100 {
		require.NoError(t, call(t.Context()))
	}
	require.NoError(t, ended())
}

// A gateway hands an ECU over to another that sees it: calls go on, and its watches
// end with UNAVAILABLE "moved" and go on at the other (CAR-31).
func TestHandOver(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	second := v.second(t)
	second.start(t)
	gateways := map[string]*hpc{"rear": v.rear, "second": second}
	offerClimate(t, v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff}), "left", 1)
	owner, standby := v.owner(t, leftName)
	client := climatev1.NewClimateClient(dial(t, v.center.egress))
	authority := grpc.CallAuthority(leftName)
	call := describe(client, authority)
	eventually(t, call)
	watch := func() grpc.ServerStreamingClient[climatev1.ClimateWatchTargetTemperatureResponse] {
		w, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{}, authority)
		require.NoError(t, err)
		_, err = w.Recv()
		require.NoError(t, err)
		return w
	}
	stream := watch()
	ended := steadily(call)
	var steps []string
	require.NoError(t, gateway.RemoveService(t.Context(), gateways[owner].state, leftName, 100*time.Millisecond,
		func(s gateway.Step) { steps = append(steps, s.Name) }))
	require.Equal(t, []string{"successor", "draining", "drained", "withdrawn", "removed"}, steps)
	_, err := stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, "moved to node "+standby, errorDetail(t, err).GetReason())
	watch()
	require.NoError(t, ended())
	require.ErrorContains(t, gateway.RemoveService(t.Context(), gateways[standby].state, leftName, time.Second,
		func(gateway.Step) {}), "no other gateway sees")
}

func other(name string) string {
	if name == "rear" {
		return "second"
	}
	return "rear"
}
