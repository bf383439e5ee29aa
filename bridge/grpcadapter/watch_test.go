package grpcadapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// source is a service whose events a test sends.
type source struct {
	fakeService
	sinks chan bridge.Sink
	end   chan error
}

func newSource() *source {
	s := &source{sinks: make(chan bridge.Sink, 1), end: make(chan error, 1)}
	s.watch = func(ctx context.Context, _ *model.Event, sink bridge.Sink) error {
		s.sinks <- sink
		select {
		case err := <-s.end:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s
}

func args(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	b, err := proto.Marshal(m)
	require.NoError(tb, err)
	return b
}

func temperature(tb testing.TB, celsius float32) []byte {
	tb.Helper()
	return args(tb, &climatev1.ClimateWatchTargetTemperatureResponse{Celsius: celsius})
}

func TestWatch(t *testing.T) {
	s := serve(t)
	src := newSource()
	s.expose(climate(t, "left"), &src.fakeService)
	client := climatev1.NewClimateClient(s.dial())
	stream, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
	require.NoError(t, err)
	_, err = stream.Header() // comes before the first item
	require.NoError(t, err)

	sink := <-src.sinks
	at := time.Unix(1700000000, 5)
	sink(bridge.Item{
		Payload: temperature(t, 21), Session: 7, Source: "rear-ecu/10.0.0.1:30501",
		Received: at, Gap: 3, Initial: true, E2E: carismav1.E2EStatus_E2E_OK_SOME_LOST,
	})
	item, err := stream.Recv()
	require.NoError(t, err)
	require.InDelta(t, 21, item.GetCelsius(), 0)
	meta := item.GetMeta()
	require.EqualValues(t, 7, meta.GetSession())
	require.Equal(t, "rear-ecu/10.0.0.1:30501", meta.GetSource())
	require.True(t, at.Equal(meta.GetReceived().AsTime()))
	require.EqualValues(t, 3, meta.GetGap())
	require.True(t, meta.GetInitial())
	require.Equal(t, carismav1.E2EStatus_E2E_OK_SOME_LOST, meta.GetE2E())

	sink(bridge.Item{Payload: temperature(t, 22)})
	item, err = stream.Recv()
	require.NoError(t, err)
	require.False(t, item.GetMeta().GetInitial())
	require.Nil(t, item.GetMeta().GetReceived())

	// The service goes: what is left is delivered, then the reason.
	sink(bridge.Item{Payload: temperature(t, 23)})
	src.end <- unavailable()
	item, err = stream.Recv()
	require.NoError(t, err)
	require.InDelta(t, 23, item.GetCelsius(), 0)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
	require.Equal(t, "StopOffer", detail(t, err).GetReason())
}

// A watcher that does not read loses the oldest events, not the memory of the
// gateway, and the next item says how many.
func TestWatchSlowReader(t *testing.T) {
	s := serve(t)
	src := newSource()
	s.expose(climate(t, "left"), &src.fakeService)
	client := climatev1.NewClimateClient(s.dial())
	stream, err := client.WatchAirQuality(t.Context(), &climatev1.ClimateWatchAirQualityRequest{})
	require.NoError(t, err)

	const events = 20_000
	sink := <-src.sinks
	body := args(t, &climatev1.ClimateWatchAirQualityResponse{Source: string(make([]byte, 1000))})
	for range events {
		sink(bridge.Item{Payload: body})
	}
	src.end <- unavailable()
	var received, lost uint64
	for {
		item, err := stream.Recv()
		if err != nil {
			require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
			break
		}
		received++
		lost += uint64(item.GetMeta().GetGap())
	}
	require.NotZero(t, lost)
	require.EqualValues(t, events, received+lost)
	require.Equal(t, lost, s.WatchStats().ItemsLost, "told and counted")
}

func TestWatchEndsWithCaller(t *testing.T) {
	s := serve(t)
	src := newSource()
	ended := make(chan struct{})
	watch := src.watch
	src.watch = func(ctx context.Context, e *model.Event, sink bridge.Sink) error {
		defer close(ended)
		return watch(ctx, e, sink)
	}
	s.expose(climate(t, "left"), &src.fakeService)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := climatev1.NewClimateClient(s.dial()).WatchAirQuality(ctx, &climatev1.ClimateWatchAirQualityRequest{})
	require.NoError(t, err)
	<-src.sinks
	cancel()
	<-ended
}
