package grpcadapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
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

func describe(zone string) *fakeService {
	return &fakeService{invoke: func(context.Context, *model.Method, []byte) (proto.Message, error) {
		return &climatev1.ClimateDescribeResponse{Zone: zone}, nil
	}}
}

func TestCall(t *testing.T) {
	s := serve(t)
	var deadline time.Time
	s.expose(climate(t, "left"), &fakeService{
		invoke: func(ctx context.Context, m *model.Method, in []byte) (proto.Message, error) {
			deadline, _ = ctx.Deadline()
			var req climatev1.ClimateBoostRequest
			require.NoError(t, proto.Unmarshal(in, &req))
			require.Equal(t, "Boost", m.Name)
			if req.GetSeconds() > 600 {
				return nil, status.FromSOMEIP(0x21, true, []byte{7}, climate(t, "left").Interface)
			}
			return &climatev1.ClimateBoostResponse{Granted: req.GetSeconds()}, nil
		},
	})
	client := climatev1.NewClimateClient(s.dial())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	want, _ := ctx.Deadline()

	resp, err := client.Boost(ctx, &climatev1.ClimateBoostRequest{Seconds: 90})
	require.NoError(t, err)
	require.EqualValues(t, 90, resp.GetGranted())
	require.WithinDuration(t, want, deadline, time.Second)

	_, err = client.Boost(ctx, &climatev1.ClimateBoostRequest{Seconds: 601})
	require.Equal(t, codes.Unknown, grpcstatus.Code(err))
	d := detail(t, err)
	require.EqualValues(t, 0x21, d.GetReturnCode())
	require.Equal(t, "BLOWER_BLOCKED", d.GetApplicationError())
	require.Equal(t, []byte{7}, d.GetPayload())
	require.True(t, d.GetException())
}

func TestCallTakesLargeMessages(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), &fakeService{
		invoke: func(_ context.Context, _ *model.Method, in []byte) (proto.Message, error) {
			var req climatev1.ClimateSetModeRequest
			require.NoError(t, proto.Unmarshal(in, &req))
			return &climatev1.ClimateDescribeResponse{Zone: req.GetReason()}, nil
		},
	})
	conn := s.dial()
	reason := string(make([]byte, 8<<20)) // more than grpc-go's default of 4 MiB
	var out climatev1.ClimateDescribeResponse
	err := conn.Invoke(t.Context(), "/"+climateName+"/SetMode", &climatev1.ClimateSetModeRequest{Reason: reason}, &out,
		grpc.MaxCallRecvMsgSize(16<<20))
	require.NoError(t, err)
	require.Equal(t, reason, out.GetZone())
}

// Header before authority before default; a contradiction is INVALID_ARGUMENT.
func TestChooseInstance(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), describe("left"))
	s.expose(climate(t, "right"), describe("right"))
	s.expose(climate(t, "Rear Seat"), describe("rear"))
	client := climatev1.NewClimateClient(s.dial())
	const suffix = ".cabin.climate.v1.climate"
	for name, c := range map[string]struct {
		header, authority string
		zone              string
		code              codes.Code
		message           string
	}{
		"default is the first":      {zone: "left"},
		"an address is no name":     {authority: "10.0.0.1:15000", zone: "left"},
		"a host is no name":         {authority: "gateway.local", zone: "left"},
		"header":                    {header: "right", zone: "right"},
		"authority":                 {authority: "right" + suffix, zone: "right"},
		"any case, any port":        {authority: "RIGHT.cabin.climate.v1.Climate:15000", zone: "right"},
		"mapped name":               {authority: "rear_20seat" + suffix, zone: "rear"},
		"exact name":                {header: "Rear Seat", zone: "rear"},
		"both":                      {header: "right", authority: "right" + suffix, zone: "right"},
		"contradiction":             {header: "left", authority: "right" + suffix, code: codes.InvalidArgument, message: "contradicts"},
		"unknown header":            {header: "roof", code: codes.NotFound, message: "Rear Seat, left, right"},
		"mapped name in header":     {header: "rear_20seat", code: codes.NotFound},
		"unknown authority":         {authority: "roof" + suffix, code: codes.NotFound, message: "Rear Seat, left, right"},
		"authority of elsewhere":    {authority: "a.b.v1.c", code: codes.NotFound, message: "a.b.v1.c"},
		"header, foreign mesh name": {header: "left", authority: "a.b.v1.c", code: codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.header != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, grpcadapter.InstanceHeader, c.header)
			}
			var opts []grpc.CallOption
			if c.authority != "" {
				opts = append(opts, grpc.CallAuthority(c.authority))
			}
			resp, err := client.Describe(ctx, &climatev1.ClimateDescribeRequest{}, opts...)
			require.Equal(t, c.code, grpcstatus.Code(err), "%v", err)
			require.Contains(t, grpcstatus.Convert(err).Message(), c.message)
			require.Equal(t, c.zone, resp.GetZone())
		})
	}
}

// A second instance never breaks callers of the default one, and where that
// goes the next oldest follows.
func TestDefaultInstanceStays(t *testing.T) {
	s := serve(t)
	client := climatev1.NewClimateClient(s.dial())
	zone := func() string {
		resp, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
		require.NoError(t, err)
		return resp.GetZone()
	}
	gone := s.expose(climate(t, "right"), describe("right"))
	s.expose(climate(t, "left"), describe("left"))
	require.Equal(t, "right", zone())
	gone(unavailable())
	require.Equal(t, "left", zone())
	s.expose(climate(t, "right"), describe("right"))
	require.Equal(t, "left", zone())
}

func TestUnknown(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), describe("left"))
	s.SetCatalogue([]grpcadapter.CatalogueEntry{
		{Name: "default.cabin.trip.v1.tripcomputer", Interface: tripName, Instance: "default", Up: true, NodeName: "center"},
	})
	conn := s.dial()
	call := func(method string, opts ...grpc.CallOption) error {
		return conn.Invoke(t.Context(), method, &climatev1.ClimateDescribeRequest{}, &climatev1.ClimateDescribeResponse{}, opts...)
	}
	err := call("/no.such.v1.Interface/Method")
	require.Equal(t, codes.Unimplemented, grpcstatus.Code(err))
	require.Contains(t, err.Error(), "no such interface")

	err = call("/" + climateName + "/Fly")
	require.Equal(t, codes.Unimplemented, grpcstatus.Code(err))
	require.Contains(t, err.Error(), "no method Fly")

	err = call("/"+climateName+"/Describe", grpc.CallAuthority("default.cabin.trip.v1.tripcomputer"))
	require.Equal(t, codes.Unimplemented, grpcstatus.Code(err))

	// An instance elsewhere, of an interface that has none here.
	_, err = tripv1.NewTripComputerClient(conn).Leg(t.Context(), &tripv1.TripComputerLegRequest{})
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
	require.Contains(t, detail(t, err).GetReason(), "node center")
}

// A call of an instance that went is answered UNAVAILABLE with the reason and
// since when: of this gateway's own knowledge, or the catalogue's.
func TestGone(t *testing.T) {
	s := serve(t)
	gone := s.expose(climate(t, "left"), describe("left"))
	client := climatev1.NewClimateClient(s.dial())
	check := func(opts ...grpc.CallOption) *carismav1.ErrorDetail {
		t.Helper()
		_, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{}, opts...)
		require.Equal(t, codes.Unavailable, grpcstatus.Code(err), "%v", err)
		return detail(t, err)
	}

	gone(unavailable())
	d := check()
	require.Equal(t, "StopOffer", d.GetReason())
	require.EqualValues(t, 1700000000, d.GetSince().GetSeconds())

	right := grpcadapter.CatalogueEntry{
		Name: "right.cabin.climate.v1.climate", Interface: climateName, Instance: "right",
		Reason: "TTL expired", Since: time.Unix(1600000000, 0), NodeName: "front",
	}
	s.SetCatalogue([]grpcadapter.CatalogueEntry{right})
	d = check(grpc.CallAuthority(right.Name))
	require.Equal(t, "TTL expired", d.GetReason())
	require.EqualValues(t, 1600000000, d.GetSince().GetSeconds())
	require.Equal(t, "StopOffer", check(grpc.CallAuthority("left.cabin.climate.v1.climate")).GetReason())

	// Taken over by another node, which this one cannot reach.
	left := right
	left.Name, left.Instance, left.Up = "left.cabin.climate.v1.climate", "left", true
	s.SetCatalogue([]grpcadapter.CatalogueEntry{left, right})
	require.Contains(t, check(grpc.CallAuthority(left.Name)).GetReason(), "node front")

	s.expose(climate(t, "left"), describe("again"))
	resp, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.NoError(t, err)
	require.Equal(t, "again", resp.GetZone())
}

// Two networks may have instances that have the same mesh name: the later one
// is refused, with the reason.
func TestNameInUse(t *testing.T) {
	s := serve(t)
	gone := s.expose(climate(t, "left"), describe("left"))
	other := climate(t, "left")
	other.Origin.Network = "front-ecu"
	err := s.Expose(t.Context(), other, &fakeService{iface: other.Interface})
	require.EqualError(t, err, "the name left.cabin.climate.v1.climate is in use by "+
		"service 0x4001 instance 0x0001 of SOME/IP network rear-ecu")
	gone(unavailable())
	s.expose(other, describe("other"))
}

var _ bridge.Adapter = grpcadapter.Adapter{}

// A gateway that was started a moment ago cannot say that there is no such thing.
func TestBeforeTheFirstCatalogue(t *testing.T) {
	s := serveAs(t, grpcadapter.ServerConfig{Node: "rear", Mesh: true})
	client := climatev1.NewClimateClient(s.dial())
	_, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
	require.Contains(t, detail(t, err).GetReason(), "just started")
	s.SetCatalogue(nil)
	_, err = client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{})
	require.Equal(t, codes.Unimplemented, grpcstatus.Code(err))
}
