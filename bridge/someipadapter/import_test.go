package someipadapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

func detail(t *testing.T, err error) *carismav1.ErrorDetail {
	t.Helper()
	for _, d := range grpcstatus.Convert(err).Details() {
		if e, ok := d.(*carismav1.ErrorDetail); ok {
			return e
		}
	}
	t.Fatalf("no detail in %v", err)
	return nil
}

// legacy starts a gateway and an ECU on one network.
func legacy(t *testing.T) (*gateway, *ecu, climatev1.ClimateClient) {
	t.Helper()
	d := newDomain(t)
	g := newGateway(t, d, climateName)
	e, err := newECU(d.host(t, 2))
	require.NoError(t, err)
	g.up(leftName, true)
	return g, e, climatev1.NewClimateClient(g.conn)
}

func TestCalls(t *testing.T) {
	g, e, client := legacy(t)
	origin := g.bridge(leftName).Origin
	require.Equal(t, bridge.Origin{
		Protocol: bridge.SOMEIP, Network: "ecu", ServiceID: 0x4001, InstanceID: 1, Major: 1, Minor: 2, Node: "rear",
	}, origin)

	described, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&climatev1.ClimateDescribeResponse{
		Zone: "left", Mode: climatev1.Mode_MODE_AUTO, SoftwareVersion: 258,
		Sensors: []*climatev1.Sensor{{Name: "roof", Celsius: 21.25, Healthy: true}},
	}, described, protocmp.Transform()))

	vents, err := client.SetVents(t.Context(), &climatev1.ClimateSetVentsRequest{Vents: []*climatev1.Vent{
		{Position: 1, Opening: 50, Direction: climatev1.Direction_DIRECTION_UP},
		{Position: 2, Opening: 101},
		{Position: 3, Opening: 100},
	}})
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 3}, vents.GetMoved())

	temperature, err := client.GetTargetTemperature(t.Context(), &climatev1.ClimateGetTargetTemperatureRequest{})
	require.NoError(t, err)
	require.InDelta(t, 21, temperature.GetCelsius(), 0)

	// An application error has its name, another its code.
	_, err = client.Boost(t.Context(), &climatev1.ClimateBoostRequest{Seconds: 601})
	require.Equal(t, codes.Unknown, grpcstatus.Code(err))
	require.EqualValues(t, 0x21, detail(t, err).GetReturnCode())
	require.Equal(t, "BLOWER_BLOCKED", detail(t, err).GetApplicationError())
	_, err = client.Boost(t.Context(), &climatev1.ClimateBoostRequest{})
	require.EqualValues(t, 0x01, detail(t, err).GetReturnCode())
	require.Empty(t, detail(t, err).GetApplicationError())

	// A value that does not fit is refused with its place, and nothing is sent.
	before := e.requests.Load()
	_, err = client.SetVents(t.Context(), &climatev1.ClimateSetVentsRequest{
		Vents: []*climatev1.Vent{{}, {Opening: 300}},
	})
	require.Equal(t, codes.InvalidArgument, grpcstatus.Code(err), "%v", err)
	require.Equal(t, "vents[1].opening", detail(t, err).GetFieldPath())
	require.Equal(t, before, e.requests.Load())

	// An answer that cannot be decoded is no success.
	e.garbage.Store(true)
	_, err = client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.Equal(t, codes.DataLoss, grpcstatus.Code(err), "%v", err)
}

// A method that the ECU does not answer ends with the caller's deadline.
func TestCallDeadline(t *testing.T) {
	_, _, client := legacy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.SetMode(ctx, &climatev1.ClimateSetModeRequest{})
	require.Equal(t, codes.DeadlineExceeded, grpcstatus.Code(err), "%v", err)
}

func TestEventsAndFields(t *testing.T) {
	_, _, client := legacy(t)
	field, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	item, err := field.Recv()
	require.NoError(t, err)
	require.InDelta(t, 21, item.GetCelsius(), 0, "the current value comes first")
	require.True(t, item.GetMeta().GetInitial())
	require.Contains(t, item.GetMeta().GetSource(), "ecu/127.")
	require.WithinDuration(t, time.Now(), item.GetMeta().GetReceived().AsTime(), time.Minute)

	_, err = client.SetTargetTemperature(t.Context(), &climatev1.ClimateSetTargetTemperatureRequest{Celsius: 24})
	require.NoError(t, err)
	item, err = field.Recv()
	require.NoError(t, err)
	require.InDelta(t, 24, item.GetCelsius(), 0)
	require.False(t, item.GetMeta().GetInitial())
	require.NotZero(t, item.GetMeta().GetSession())

	// A second watcher gets the value of now, though nothing is subscribed anew.
	second, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	item, err = second.Recv()
	require.NoError(t, err)
	require.InDelta(t, 24, item.GetCelsius(), 0)
	require.True(t, item.GetMeta().GetInitial())

	// Fire and forget: answered once sent, and the event that it causes comes.
	events, err := client.WatchAirQuality(t.Context(), &climatev1.ClimateWatchAirQualityRequest{})
	require.NoError(t, err)
	got := make(chan *climatev1.ClimateWatchAirQualityResponse, 1)
	go func() {
		if item, err := events.Recv(); err == nil {
			got <- item
		}
	}()
	var air *climatev1.ClimateWatchAirQualityResponse
	eventually(t, func() bool { // until the subscription stands
		_, err := client.Purge(t.Context(), &climatev1.ClimatePurgeRequest{Strength: 7})
		select {
		case air = <-got:
			return err == nil
		default:
			return false
		}
	}, "air quality")
	require.EqualValues(t, 407, air.GetCo2Ppm())
	require.Equal(t, []uint32{407, 408}, air.GetSamples())
	require.Equal(t, "left", air.GetSource())
	require.False(t, air.GetMeta().GetInitial())
}

// Watchers of one eventgroup share its subscription; one that joins later gets
// the value of a field that the first one caused to be sent.
func TestFieldValueOfSharedSubscription(t *testing.T) {
	g, _, client := legacy(t)
	field, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	_, err = field.Recv()
	require.NoError(t, err)
	for range 3 {
		again, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
		require.NoError(t, err)
		item, err := again.Recv()
		require.NoError(t, err)
		require.True(t, item.GetMeta().GetInitial())
		require.Zero(t, item.GetMeta().GetGap())
	}
	require.True(t, g.bridge(leftName).Up)
}

func TestStopAndStart(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d, climateName)
	host := d.host(t, 2)
	e, err := newECU(host)
	require.NoError(t, err)
	g.up(leftName, true)
	client := climatev1.NewClimateClient(g.conn)
	stream, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)

	stopped := time.Now()
	e.offering.Stop()
	for err == nil {
		_, err = stream.Recv()
	}
	gone := func(err error, reason string) {
		t.Helper()
		require.Equal(t, codes.Unavailable, grpcstatus.Code(err), "%v", err)
		require.Equal(t, reason, detail(t, err).GetReason())
		require.WithinDuration(t, stopped, detail(t, err).GetSince().AsTime(), time.Minute)
	}
	gone(err, "stopped by its server")
	g.up(leftName, false)
	_, err = client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	gone(err, "stopped by its server")

	_, err = newECU(host)
	require.NoError(t, err)
	g.up(leftName, true)
	_, err = client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.NoError(t, err, "the same client works again")
	stream, err = client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	item, err := stream.Recv()
	require.NoError(t, err)
	require.True(t, item.GetMeta().GetInitial())
}

// An instance that was offered before the gateway came is asked for: its next offer
// is an hour away.
func TestImportAsks(t *testing.T) {
	d := newDomain(t)
	d.quiet = true
	seen := make(chan runtime.Availability, 1)
	require.NoError(t, d.host(t, 3).Observe(t.Context(),
		runtime.Filter{Service: 0x4001, Instance: 1, Major: 1}, func(a runtime.Availability) { seen <- a }))
	_, err := newECU(d.host(t, 2))
	require.NoError(t, err)
	require.True(t, receive(t, seen).Up)

	g := newGateway(t, d, climateName)
	g.up(leftName, true)
}

// A killed ECU is noticed by its TTL, one that restarted before by its reboot.
func TestKill(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d, climateName)
	client := climatev1.NewClimateClient(g.conn)
	watch := func() (end func() string) {
		var stream grpc.ServerStreamingClient[climatev1.ClimateWatchTargetTemperatureResponse]
		eventually(t, func() bool {
			var err error
			stream, err = client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err == nil
		}, "the value of the field")
		return func() string {
			_, err := stream.Recv()
			require.Equal(t, codes.Unavailable, grpcstatus.Code(err), "%v", err)
			return detail(t, err).GetReason()
		}
	}
	kill := d.ecuOnItsOwn(t)
	end := watch()
	kill()
	require.Equal(t, "offers ceased", end())

	kill = d.ecuOnItsOwn(t)
	end = watch()
	// A restart sooner than that looks like a datagram that came twice (RB-7).
	eventually(t, func() bool { return time.Since(g.bridge(leftName).Since) > 200*time.Millisecond }, "a while")
	kill()
	d.ecuOnItsOwn(t)
	require.Equal(t, "its host restarted", end())
	watch()
}

// An offer of an unknown interface waits for its descriptors.
func TestInterfaceLearntLater(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d)
	_, err := newECU(d.host(t, 2))
	require.NoError(t, err)
	g.learn(tripName)
	require.False(t, g.mesh.Serves(leftName))
	g.learn(climateName)
	g.up(leftName, true)
}
