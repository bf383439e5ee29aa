package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

const (
	tripName      = "default.cabin.trip.v1.tripcomputer"
	tripInterface = "cabin.trip.v1.TripComputer"
)

// add adds the trip computer to a node and waits until the mesh has it.
func (h *hpc) add(t *testing.T, address string) []string {
	t.Helper()
	var steps []string
	err := gateway.AddService(t.Context(), h.state,
		config.Service{Interface: tripInterface, Instance: "default", Address: address}, patience,
		func(s gateway.Step) { steps = append(steps, s.Name); require.Empty(t, s.Late) })
	require.NoError(t, err)
	return steps
}

func (h *hpc) remove(t *testing.T, drain time.Duration) (steps []string, details string) {
	t.Helper()
	err := gateway.RemoveService(t.Context(), h.state, tripName, drain, func(s gateway.Step) {
		steps = append(steps, s.Name)
		details += s.Detail + "\n"
		require.Empty(t, s.Late)
	})
	require.NoError(t, err)
	return steps, details
}

// native is where the node has the trip computer, empty if it has not.
func (h *hpc) native(t *testing.T) string {
	t.Helper()
	for _, in := range h.status(t).Instances {
		if in.Name == tripName && in.From != "gRPC" {
			return in.From
		}
	}
	return ""
}

// load is unary calls without a pause, and streams, to the trip computer.
type load struct {
	calls, items atomic.Int64
	mu           sync.Mutex
	failed       []error
	stop         func()
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, err)
}

// startLoad calls from several callers at each of the egress listeners at once.
func startLoad(t *testing.T, callers int, egress ...string) *load {
	t.Helper()
	l := &load{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, target := range egress {
		client := tripv1.NewTripComputerClient(dial(t, target))
		for range callers {
			wg.Go(func() {
				for ctx.Err() == nil {
					call, end := context.WithTimeout(context.Background(), patience)
					_, err := client.Leg(call, &tripv1.TripComputerLegRequest{Name: "x"}, grpc.CallAuthority(tripName))
					end()
					if err != nil {
						l.fail(err)
					}
					l.calls.Add(1)
				}
			})
		}
		wg.Go(func() {
			stream, err := client.WatchConsumption(ctx, &tripv1.TripComputerWatchConsumptionRequest{}, grpc.CallAuthority(tripName))
			for err == nil {
				if _, err = stream.Recv(); err == nil {
					l.items.Add(1)
				}
			}
			if ctx.Err() == nil {
				l.fail(fmt.Errorf("stream: %w", err))
			}
		})
	}
	l.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(l.stop)
	return l
}

// more waits until calls and items went through since now.
func (l *load) more(t *testing.T, calls, items int64) {
	t.Helper()
	calls, items = calls+l.calls.Load(), items+l.items.Load()
	require.Eventually(t, func() bool { return l.calls.Load() >= calls && l.items.Load() >= items }, patience, time.Millisecond)
}

// CAR-31, 43: a service moves from center to rear and back, by the steps of a
// move, while callers on both HPCs go on without a pause: not one call fails and no
// stream ends.
func TestMoveUnderLoad(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	other := serveTrip(t, "127.78.0.2:0")
	home := v.center.native(t)
	for _, h := range []*hpc{v.center, v.rear} {
		client := tripv1.NewTripComputerClient(dial(t, h.egress))
		eventually(t, func(ctx context.Context) error {
			_, err := client.Leg(ctx, &tripv1.TripComputerLegRequest{Name: "x"}, grpc.CallAuthority(tripName))
			return err
		})
	}
	l := startLoad(t, 8, v.center.egress, v.rear.egress)
	l.more(t, 500, 10)
	from, to, addresses := v.center, v.rear, map[*hpc]string{v.center: home, v.rear: other}
	const drain = 200 * time.Millisecond
	for move := range 4 {
		require.Equal(t, []string{"added", "healthy", "announced"}, to.add(t, addresses[to]))
		l.more(t, 100, 2)
		steps, details := from.remove(t, drain)
		require.Equal(t, []string{"successor", "draining", "drained", "withdrawn", "removed"}, steps, "move %d", move)
		if move == 0 {
			require.Contains(t, details, "streams still run")
		}
		require.Contains(t, details, "center, rear")
		l.more(t, 500, 10)
		from, to = to, from
	}
	l.stop()
	require.Empty(t, l.failed, "of %d calls", l.calls.Load())
	t.Logf("%d calls and %d items during 4 moves", l.calls.Load(), l.items.Load())
}

// What commands changed holds over a restart, and a service that goes without a
// successor is explained.
func TestServicesAreKept(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	client := tripv1.NewTripComputerClient(dial(t, v.center.egress))
	call := func(ctx context.Context) error {
		_, err := client.Leg(ctx, &tripv1.TripComputerLegRequest{Name: "x"}, grpc.CallAuthority(tripName))
		return err
	}
	eventually(t, call)
	home := v.center.native(t)

	steps, _ := v.center.remove(t, time.Second)
	require.Equal(t, []string{"no successor", "withdrawn", "drained", "removed"}, steps)
	require.Equal(t, codes.NotFound, status.Code(call(t.Context())))
	require.Empty(t, v.center.native(t))

	restart := func() {
		require.NoError(t, v.center.stop())
		v.center.start(t)
	}
	restart()
	require.Empty(t, v.center.native(t), "it is in the node file, and was removed")
	other := serveTrip(t, "127.78.0.1:0")
	v.center.add(t, other)
	require.NoError(t, call(t.Context()))
	restart()
	eventually(t, call)
	require.Equal(t, other, v.center.native(t))

	v.center.remove(t, 0)
	v.center.add(t, home)
	restart()
	eventually(t, call)
	require.Equal(t, home, v.center.native(t))
}

// A command that cannot be done says why, and changes nothing.
func TestServiceCommandsRefused(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	ctx, none := t.Context(), func(gateway.Step) {}
	add := func(s config.Service) error { return gateway.AddService(ctx, v.center.state, s, 0, none) }
	require.ErrorContains(t, add(config.Service{Interface: "no version", Instance: "a", Address: "127.0.0.1:1"}), "interface")
	require.ErrorContains(t, add(config.Service{Interface: tripInterface, Instance: "a", Address: "nowhere"}), "address")
	require.ErrorContains(t, add(config.Service{Interface: tripInterface, Instance: "default", Address: "127.0.0.1:1"}), "there already")
	require.ErrorContains(t, gateway.RemoveService(ctx, v.center.state, "no.such", 0, none), tripName)
	err := gateway.AddService(ctx, v.center.state,
		config.Service{Interface: tripInterface, Instance: "dead", Address: "127.78.0.1:1"}, time.Second, none)
	require.ErrorContains(t, err, "does not answer")
	require.ErrorContains(t, gateway.RemoveService(ctx, t.TempDir(), "x", 0, none), "no gateway answers")

	// A drain that cannot be told to the mesh is given up.
	require.NoError(t, v.stopCentral())
	require.Eventually(t, func() bool { return !v.center.status(t).ControlPlane.Connected }, patience, time.Millisecond)
	require.ErrorContains(t, gateway.RemoveService(ctx, v.center.state, tripName, time.Second, none), "stays")
	require.NotEmpty(t, v.center.native(t))
}
