package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

const leftName, rightName = "left.cabin.climate.v1.climate", "right.cabin.climate.v1.climate"

// eventually calls f until it answers without error, as a client does that was
// told UNAVAILABLE.
func eventually(t *testing.T, f func(ctx context.Context) error) {
	t.Helper()
	var last error
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last = f(ctx)
		return last == nil
	}, patience, 5*time.Millisecond, "last: %v", last)
	if last != nil {
		t.Fatal(last)
	}
}

func describe(c climatev1.ClimateClient, opts ...grpc.CallOption) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Describe(ctx, &climatev1.ClimateDescribeRequest{}, opts...)
		return err
	}
}

// Issue 3, flow 1: a SOME/IP service on rear's network answers a gRPC client that
// knows only the egress listener of center (CAR-27, 30, 39, 45).
func TestLegacyToNew(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	ecu := v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	left := offerClimate(t, ecu, "left", 1)
	offerClimate(t, ecu, "right", 2)

	conn := dial(t, v.center.egress)
	client := climatev1.NewClimateClient(conn)
	for _, name := range []string{"left", "right"} {
		authority := grpc.CallAuthority(name + ".cabin.climate.v1.climate")
		eventually(t, describe(client, authority))
		d, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{}, authority)
		require.NoError(t, err)
		require.Equal(t, name, d.GetZone())
		require.InDelta(t, 21.25, d.GetSensors()[0].GetCelsius(), 0)
		require.EqualValues(t, 258, d.GetSoftwareVersion())

		header := metadata.AppendToOutgoingContext(t.Context(), api.InstanceHeader, name)
		d, err = client.Describe(header, &climatev1.ClimateDescribeRequest{})
		require.NoError(t, err, "by the header alone")
		require.Equal(t, name, d.GetZone())
	}
	authority := grpc.CallAuthority(leftName)

	_, err := client.Boost(t.Context(), &climatev1.ClimateBoostRequest{Seconds: 601}, authority)
	detail := errorDetail(t, err)
	require.EqualValues(t, 0x21, detail.GetReturnCode())
	require.Equal(t, "BLOWER_BLOCKED", detail.GetApplicationError())
	_, err = client.Boost(t.Context(), &climatev1.ClimateBoostRequest{Seconds: 70000}, authority)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "seconds")

	_, err = client.Purge(t.Context(), &climatev1.ClimatePurgeRequest{Strength: 7}, authority)
	require.NoError(t, err)
	require.EqualValues(t, 7, await(t, left.purged))

	watch, err := client.WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{}, authority)
	require.NoError(t, err)
	item, err := watch.Recv()
	require.NoError(t, err)
	require.InDelta(t, 21, item.GetCelsius(), 0, "the current value comes first")
	set, err := client.SetTargetTemperature(t.Context(), &climatev1.ClimateSetTargetTemperatureRequest{Celsius: 30}, authority)
	require.NoError(t, err)
	require.InDelta(t, 28, set.GetCelsius(), 0, "what was accepted")
	item, err = watch.Recv()
	require.NoError(t, err)
	require.InDelta(t, 28, item.GetCelsius(), 0)

	require.Eventually(t, func() bool {
		return slices.Contains(listServices(t, conn), "cabin.climate.v1.Climate")
	}, patience, time.Millisecond, "without an authority the gateway answers for the mesh")

	// Going and coming (flow 3): the stream and calls end with the reason, and the
	// same client works again.
	leave(t, ecu)
	for err == nil {
		_, err = watch.Recv()
	}
	require.Equal(t, codes.Unavailable, status.Code(err))
	gone := errorDetail(t, err)
	require.Contains(t, gone.GetReason(), "stopped")
	require.WithinDuration(t, time.Now(), gone.GetSince().AsTime(), patience)
	untilGone(t, client, authority, "stopped")

	ecu = v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	offerClimate(t, ecu, "left", 1)
	eventually(t, describe(client, authority))

	// What rear's gateway bridges goes with it, and callers are told.
	require.NoError(t, v.rear.stop())
	untilGone(t, client, authority, "gateway stops")
}

// untilGone calls until center's own gateway says why the service went: its Envoy
// may hear it a moment before.
func untilGone(t *testing.T, client climatev1.ClimateClient, authority grpc.CallOption, reason string) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := describe(client, authority)(t.Context())
		return status.Code(err) == codes.Unavailable && len(status.Convert(err).Details()) > 0 &&
			strings.Contains(errorDetail(t, err).GetReason(), reason)
	}, patience, 5*time.Millisecond)
}

func errorDetail(t *testing.T, err error) *carismav1.ErrorDetail {
	t.Helper()
	require.Error(t, err)
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*carismav1.ErrorDetail); ok {
			return e
		}
	}
	require.Failf(t, "no detail", "%v", err)
	return nil
}

func listServices(t *testing.T, conn *grpc.ClientConn) (names []string) {
	t.Helper()
	s, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}))
	resp, err := s.Recv()
	require.NoError(t, err)
	for _, e := range resp.GetListServicesResponse().GetService() {
		names = append(names, e.GetName())
	}
	return names
}

// Issue 3, flow 2: a gRPC service on center is a SOME/IP service on rear's network.
func TestNewToLegacy(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	v.rear.start(t)
	cluster := v.host(t, "127.78.1.3", runtime.Range{First: 0x1500, Last: 0x15ff})
	client, err := cluster.Client(runtime.InstanceKey{Service: 0x5001, Instance: 1, Major: 1})
	require.NoError(t, err)
	defer client.Close()

	w := payload.NewWriter(nil)
	w.String(4, payload.PlainText, "commute")
	request, err := w.Payload()
	require.NoError(t, err)
	eventually(t, func(ctx context.Context) error {
		_, err := client.Call(ctx, 0x0001, false, request)
		return err // any answer: an instance that is offered works
	})
	resp, err := client.Call(t.Context(), 0x0001, false, request)
	require.NoError(t, err)
	require.EqualValues(t, 0, resp.Code)
	r := payload.NewReader(resp.Payload)
	require.InDelta(t, 42.5, r.Float64(), 0)

	resp, err = client.Call(t.Context(), 0x0002, true, []byte{0, 0, 0, 0})
	require.NoError(t, err)
	require.NotZero(t, resp.Code, "the service does not have Average")

	ranges := make(chan uint16, 64)
	sub, err := client.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: 1, Events: []uint16{0x8001}, Unreliable: true,
		OnEvent: func(n runtime.Notification) {
			r := payload.NewReader(n.Payload)
			_ = r.Float32()
			select {
			case ranges <- r.Uint16():
			default:
			}
		},
	})
	require.NoError(t, err)
	defer sub.Close()
	first := await(t, ranges)
	require.Less(t, await(t, ranges), first)

	// On its own node the service is called directly, on rear through center's
	// ingress: the caller sees no difference (CAR-26, 27, 30).
	for _, h := range []*hpc{v.center, v.rear} {
		eventually(t, func(ctx context.Context) error {
			_, err := tripv1.NewTripComputerClient(dial(t, h.egress)).Leg(ctx, &tripv1.TripComputerLegRequest{Name: "x"})
			return err
		})
	}

	s := v.rear.status(t)
	require.Equal(t, "rear", s.Node)
	require.True(t, s.ControlPlane.Connected)
	require.Equal(t, s.NodeID, s.Envoy.NodeID, "CAR-11")
	require.Len(t, s.Networks, 1)
	require.True(t, s.Networks[0].Up)
	require.Len(t, s.Instances, 1)
	require.Equal(t, "exposed", s.Instances[0].Exposures[0].State)
	s = v.center.status(t)
	require.Equal(t, "default.cabin.trip.v1.tripcomputer", s.Instances[0].Name)
	require.True(t, s.Instances[0].Up)
}
