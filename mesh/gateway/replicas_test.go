package gateway_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// replica is a trip computer that counts what it serves and signs it.
type replica struct {
	tripv1.UnimplementedTripComputerServer
	litres  float32 // its sign
	calls   atomic.Int64
	address string
	kill    func()
}

func (r *replica) Leg(context.Context, *tripv1.TripComputerLegRequest) (*tripv1.TripComputerLegResponse, error) {
	r.calls.Add(1)
	return &tripv1.TripComputerLegResponse{Kilometres: 1}, nil
}

func (r *replica) WatchConsumption(_ *tripv1.TripComputerWatchConsumptionRequest, s grpc.ServerStreamingServer[tripv1.TripComputerWatchConsumptionResponse]) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := s.Send(&tripv1.TripComputerWatchConsumptionResponse{Litres: r.litres}); err != nil {
			return err
		}
		select {
		case <-s.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}

func serveReplica(t *testing.T, address string, litres float32) *replica {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.WaitForHandlers(true))
	r := &replica{litres: litres, address: l.Addr().String()}
	tripv1.RegisterTripComputerServer(srv, r)
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	r.kill = sync.OnceFunc(func() { srv.Stop(); wg.Wait() })
	t.Cleanup(r.kill)
	return r
}

// balanced requires that both replicas had half of the calls since before, ±5 %.
func balanced(t *testing.T, a, b *replica, calls int64) {
	t.Helper()
	x, y := a.calls.Swap(0), b.calls.Swap(0)
	require.Equal(t, calls, x+y)
	require.InDelta(t, calls/2, x, float64(calls)*0.05)
}

// replicated is a vehicle whose trip computer runs on center and on front; rear, on
// whose network the ECUs are, has none.
func replicated(t *testing.T) (v *vehicle, front *hpc, a, b *replica) {
	t.Helper()
	v = newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	front = v.node(t, "front", "satellite", "127.78.0.4", "")
	front.start(t)
	a, b = serveReplica(t, "127.78.0.1:0", 1), serveReplica(t, "127.78.0.4:0", 2)
	v.center.remove(t, 0)
	v.center.add(t, a.address)
	front.add(t, b.address)
	a.calls.Store(0)
	b.calls.Store(0)
	return v, front, a, b
}

// CAR-28: two instances on two nodes are balanced; on their own nodes each shadows
// the other (CAR-21).
func TestReplicasAreBalanced(t *testing.T) {
	v, front, a, b := replicated(t)
	call := func(h *hpc, calls int) {
		client := tripv1.NewTripComputerClient(dial(t, h.egress))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range calls / 10 {
					_, err := client.Leg(t.Context(), &tripv1.TripComputerLegRequest{}, grpc.CallAuthority(tripName))
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	call(v.rear, 10000)
	balanced(t, a, b, 10000)
	call(v.center, 100)
	require.EqualValues(t, 100, a.calls.Swap(0))
	call(front, 100)
	require.EqualValues(t, 100, b.calls.Swap(0))
}

// CAR-51: a SOME/IP client holds one instance. Behind it replicas share its calls,
// its subscription stays with one and fails over, a replica moves and dies, and
// service discovery shows nothing of it.
func TestSOMEIPClientOfReplicas(t *testing.T) {
	v, front, a, b := replicated(t)
	cluster := v.host(t, "127.78.1.3", runtime.Range{First: 0x1500, Last: 0x15ff})
	client, err := cluster.Client(runtime.InstanceKey{Service: 0x5001, Instance: 1, Major: 1})
	require.NoError(t, err)
	defer client.Close()
	var sightings atomic.Int64
	require.NoError(t, cluster.Observe(t.Context(),
		runtime.Filter{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor},
		func(runtime.Availability) { sightings.Add(1) }))
	require.NoError(t, client.Await(t.Context()))

	w := payload.NewWriter(nil)
	w.String(4, payload.PlainText, "x")
	request, err := w.Payload()
	require.NoError(t, err)
	call := func() error {
		resp, err := client.Call(t.Context(), 0x0001, false, request)
		if err == nil && resp.Code != someip.OK {
			err = fmt.Errorf("return code %v", resp.Code)
		}
		return err
	}
	leg := func() { require.NoError(t, call()) }
	for range 2000 {
		leg()
	}
	balanced(t, a, b, 2000)

	var sign atomic.Int64
	items := make(chan struct{}, 1)
	sub, err := client.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: 1, Events: []uint16{0x8001}, Unreliable: true,
		OnEvent: func(n runtime.Notification) {
			r := payload.NewReader(n.Payload)
			sign.Store(int64(r.Float32()))
			select {
			case items <- struct{}{}:
			default:
			}
		},
	})
	require.NoError(t, err)
	defer sub.Close()
	await(t, items)
	first := sign.Load()
	for range 50 {
		await(t, items)
		leg()
		require.Equal(t, first, sign.Load(), "it stays with its replica")
	}

	// The replica that it does not watch is replaced by another, under calls.
	stop, called := make(chan struct{}), make(chan error, 1)
	go func() {
		for err := error(nil); ; err = call() {
			select {
			case <-stop:
			default:
				if err == nil {
					continue
				}
			}
			called <- err
			return
		}
	}()
	stays, moves, from, address := a, b, front, "127.78.0.4:0"
	if first == 2 {
		stays, moves, from, address = b, a, v.center, "127.78.0.1:0"
	}
	from.remove(t, time.Second)
	moves.kill()
	moved := serveReplica(t, address, 3)
	from.add(t, moved.address)
	require.Eventually(t, func() bool { return moved.calls.Load() > 100 || len(called) > 0 }, patience, time.Millisecond)
	close(stop)
	require.NoError(t, <-called)
	require.Equal(t, first, sign.Load())

	// The one that it watches dies: the subscription fails over.
	stays.kill()
	require.Eventually(t, func() bool { return sign.Load() == 3 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return call() == nil }, patience, time.Millisecond)
	require.EqualValues(t, 1, sightings.Load(), "one offer, and never another word")
}
