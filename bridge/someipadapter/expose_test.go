package someipadapter_test

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// trip is a gRPC service of the mesh.
type trip struct {
	iface   *model.Interface
	hold    chan struct{} // if not nil, Leg waits for it
	mu      sync.Mutex
	holding int
	sink    bridge.Sink
}

func (s *trip) Interface() *model.Interface { return s.iface }

func (s *trip) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	if m.RPC == "Average" {
		var req tripv1.TripComputerAverageRequest
		if err := proto.Unmarshal(in, &req); err != nil {
			return nil, status.New(codes.Internal, "%v", err)
		}
		return proto.Marshal(&tripv1.TripComputerAverageResponse{
			Mean: float32(len(req.GetSpeeds())), SpeedClass: tripv1.SpeedClass_SPEED_CLASS_ROAD,
		})
	}
	if s.hold != nil {
		s.mu.Lock()
		s.holding++
		s.mu.Unlock()
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, status.FromGRPC(ctx.Err())
		}
	}
	var req tripv1.TripComputerLegRequest
	if err := proto.Unmarshal(in, &req); err != nil {
		return nil, status.New(codes.Internal, "%v", err)
	}
	switch req.GetName() {
	case "":
		return nil, status.New(codes.InvalidArgument, "no name")
	case "commute":
		return proto.Marshal(&tripv1.TripComputerLegResponse{Kilometres: 42.5, Waypoints: []string{"Home", "Office"}})
	case "late":
		return nil, status.DeadlineExceeded()
	case "foreign":
		return nil, status.FromSOMEIP(0x42, false, []byte{1, 2}, nil)
	}
	return nil, status.New(codes.NotFound, "no such leg")
}

func (s *trip) Watch(ctx context.Context, _ *model.Event, sink bridge.Sink) error {
	s.mu.Lock()
	s.sink = sink
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.sink = nil
	s.mu.Unlock()
	return context.Cause(ctx)
}

func (s *trip) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sink != nil
}

func (s *trip) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding
}

func (s *trip) consume(tb testing.TB, km uint32) {
	tb.Helper()
	b, err := proto.Marshal(&tripv1.TripComputerWatchConsumptionResponse{Litres: 6.5, RangeKm: km})
	require.NoError(tb, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sink != nil {
		s.sink(bridge.Item{Payload: b})
	}
}

var tripKey = runtime.InstanceKey{Service: 0x5001, Instance: 1, Major: 1}

func (g *gateway) offerTrip(svc *trip, name string) {
	g.tb.Helper()
	k := known(g.tb, tripName)
	svc.iface = k.Interface
	g.mesh.offers <- bridge.Offer{
		Instance: bridge.Instance{
			Interface: k.Interface, Name: name, Descriptors: k.Descriptors,
			Origin: bridge.Origin{Protocol: bridge.GRPC, Node: "center"},
		},
		Service: svc, Since: time.Now(),
	}
}

// exposed starts a gateway that exposes a gRPC service, and a SOME/IP client.
func exposed(t *testing.T, svc *trip) (*gateway, domain, *runtime.Client) {
	t.Helper()
	d := newDomain(t)
	g := newGateway(t, d)
	g.offerTrip(svc, "default")
	c, err := d.host(t, 3).Client(tripKey)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	eventually(t, func() bool { return c.Availability().Up }, "offer of the trip computer")
	return g, d, c
}

func TestExposedCalls(t *testing.T) {
	g, _, client := exposed(t, &trip{})
	call := func(method uint16, reliable bool, payload []byte) runtime.Response {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, err := client.Call(ctx, method, reliable, payload)
		require.NoError(t, err)
		return r
	}
	r := call(1, false, text("commute"))
	require.Equal(t, someip.OK, r.Code)
	waypoints := concat(text("Home"), text("Office"))
	require.Equal(t, concat(
		binary.BigEndian.AppendUint64(nil, math.Float64bits(42.5)),
		binary.BigEndian.AppendUint32(nil, uint32(len(waypoints))), waypoints,
	), r.Payload)

	r = call(2, true, []byte{0, 0, 0, 4, 0, 30, 0, 90}) // over TCP
	require.Equal(t, someip.OK, r.Code)
	require.Equal(t, append(float(2), 1), r.Payload)

	// Errors as the table says, in ERROR messages without payload.
	for leg, code := range map[string]someip.ReturnCode{
		"": someip.MalformedMessage, "holiday": someip.NotOK, "late": someip.Timeout,
	} {
		r = call(1, false, text(leg))
		require.Equal(t, runtime.Response{Code: code, Exception: true}, r, "leg %q", leg)
	}
	// An error that came from SOME/IP goes back as it left.
	require.Equal(t, runtime.Response{Code: 0x42, Payload: []byte{1, 2}}, call(1, false, text("foreign")))
	require.Equal(t, someip.MalformedMessage, call(1, false, []byte{0, 0}).Code)
	require.Equal(t, someip.UnknownMethod, call(3, false, nil).Code)

	require.Equal(t, bridge.Exposed, g.bridge(tripMesh).Exposures[0].State)
}

func TestExposedEvents(t *testing.T) {
	svc := &trip{}
	_, _, client := exposed(t, svc)
	require.False(t, svc.watched(), "nobody subscribed")
	got := make(chan []byte, 64)
	sub, err := client.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: 1, Unreliable: true,
		OnEvent: func(n runtime.Notification) { got <- append([]byte(nil), n.Payload...) },
	})
	require.NoError(t, err)
	var payload []byte
	eventually(t, func() bool { // until the subscription stands
		svc.consume(t, 600)
		select {
		case payload = <-got:
			return true
		default:
			return false
		}
	}, "consumption")
	require.Equal(t, append(float(6.5), 0x02, 0x58), payload)
	svc.consume(t, 1<<16) // does not fit: dropped, and the next one comes
	svc.consume(t, 599)
	eventually(t, func() bool { return (<-got)[5] == 0x57 }, "the next item")
	sub.Close()
	eventually(t, func() bool { return !svc.watched() }, "end of the watch")
}

func TestExposedGoesAndComes(t *testing.T) {
	g, _, client := exposed(t, &trip{})
	k := known(t, tripName)
	g.mesh.offers <- bridge.Offer{
		Instance: bridge.Instance{Interface: k.Interface, Name: "default"}, Reason: "removed", Since: time.Now(),
	}
	eventually(t, func() bool { return !client.Availability().Up }, "StopOffer")
	require.Equal(t, runtime.ReasonStopOffer, client.Availability().Reason)
	g.offerTrip(&trip{}, "default")
	eventually(t, func() bool { return client.Availability().Up }, "offer")
}

// Requests are served up to a limit; one too many is refused at once, and the
// receive goroutine is never held up.
func TestExposedRequestLimit(t *testing.T) {
	svc := &trip{hold: make(chan struct{})}
	_, _, client := exposed(t, svc)
	const limit = 256
	answers := make(chan someip.ReturnCode, limit)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range limit {
		go func() {
			r, err := client.Call(ctx, 1, false, text("commute"))
			if err == nil {
				answers <- r.Code
			}
		}()
	}
	eventually(t, func() bool { return svc.held() == limit }, "requests served")
	r, err := client.Call(ctx, 1, false, text("commute"))
	require.NoError(t, err)
	require.Equal(t, someip.NotReady, r.Code)
	r, err = client.Call(ctx, 2, true, []byte{0, 0, 0, 0})
	require.NoError(t, err)
	require.Equal(t, someip.NotReady, r.Code)
	close(svc.hold)
	for range limit {
		require.Equal(t, someip.OK, receive(t, answers))
	}
}

// A native offer of the same ids wins; when it goes the instance is exposed again.
func TestNativeOfferWins(t *testing.T) {
	g, d, client := exposed(t, &trip{})
	native, err := d.host(t, 4).Offer(runtime.ServiceConfig{
		Service: tripKey.Service, Instance: tripKey.Instance, Major: tripKey.Major, UDPPort: runtime.AutoPort,
	})
	require.NoError(t, err)
	eventually(t, func() bool { return g.bridge(tripMesh).Exposures[0].State == bridge.Failed }, "withdrawal")
	require.Contains(t, g.bridge(tripMesh).Exposures[0].Reason, "a native service at 127.")
	native.Stop()
	eventually(t, func() bool { return g.bridge(tripMesh).Exposures[0].State == bridge.Exposed }, "exposure")
	eventually(t, func() bool { return client.Availability().Up }, "offer")
}

func TestNotExposable(t *testing.T) {
	g := newGateway(t, newDomain(t))
	g.offerTrip(&trip{}, "second")
	eventually(t, func() bool { return len(g.Plan()) == 1 && g.Plan()[0].Exposures[0].Reason != "" }, "reason")
	x := g.Plan()[0].Exposures[0]
	require.Equal(t, bridge.Denied, x.State)
	require.Equal(t, `interface cabin.trip.v1.TripComputer has no SOME/IP instance id for "second"`, x.Reason)
}

// What comes from a network is not offered on it again, also when it comes back
// through the mesh.
func TestNoLoop(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d, climateName)
	_, err := newECU(d.host(t, 2))
	require.NoError(t, err)
	g.up(leftName, true)
	k := known(t, climateName)
	g.mesh.offers <- bridge.Offer{
		Instance: bridge.Instance{Interface: k.Interface, Name: "right", Origin: bridge.Origin{
			Protocol: bridge.SOMEIP, Network: "ecu", ServiceID: 0x4001, InstanceID: 2, Major: 1, Node: "front",
		}},
		Service: &trip{iface: k.Interface},
	}
	eventually(t, func() bool { return len(g.Plan()) == 2 }, "instance of the mesh")
	right := g.bridge("right.cabin.climate.v1.climate")
	require.Equal(t, bridge.Denied, right.Exposures[0].State)
	require.Equal(t, "it comes from that network, seen there by node front", right.Exposures[0].Reason)
	for _, x := range g.bridge(leftName).Exposures {
		require.Equal(t, bridge.GRPC, x.On.Protocol)
	}
}
