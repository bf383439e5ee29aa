package grpcadapter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"carisma.dev/gateway/bridge/grpcadapter"
)

const (
	serving    = healthv1.HealthCheckResponse_SERVING
	notServing = healthv1.HealthCheckResponse_NOT_SERVING
)

func TestHealth(t *testing.T) {
	s := serve(t)
	gone := s.expose(climate(t, "left"), describe("left"))
	s.SetCatalogue([]grpcadapter.CatalogueEntry{tripEntry(t)})
	client := healthv1.NewHealthClient(s.dial())
	check := func(service string, opts ...grpc.CallOption) any {
		resp, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service}, opts...)
		if err != nil {
			return grpcstatus.Code(err)
		}
		return resp.GetStatus()
	}
	const left, trip = "left.cabin.climate.v1.climate", "default.cabin.trip.v1.tripcomputer"
	require.Equal(t, serving, check(""))
	require.Equal(t, serving, check(left))
	require.Equal(t, serving, check(trip))
	require.Equal(t, serving, check(climateName))
	require.Equal(t, serving, check("", grpc.CallAuthority(left)))
	require.Equal(t, serving, check(left, grpc.CallAuthority(left)))
	require.Equal(t, serving, check(climateName, grpc.CallAuthority(left)))
	require.Equal(t, codes.NotFound, check(trip, grpc.CallAuthority(left)))
	// It is up elsewhere, but who asks for it here has no path to it.
	require.Equal(t, notServing, check("", grpc.CallAuthority(trip)))
	require.Equal(t, codes.NotFound, check("no.such"))
	require.Equal(t, codes.NotFound, check("", grpc.CallAuthority("roof.cabin.climate.v1.climate")))

	watch, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{Service: left})
	require.NoError(t, err)
	next := func() healthv1.HealthCheckResponse_ServingStatus {
		resp, err := watch.Recv()
		require.NoError(t, err)
		return resp.GetStatus()
	}
	require.Equal(t, serving, next())
	gone(unavailable())
	require.Equal(t, notServing, next())
	require.Equal(t, notServing, check(left))
	require.Equal(t, notServing, check("", grpc.CallAuthority(left)))
	require.Equal(t, notServing, check(climateName))
	s.expose(climate(t, "left"), describe("left"))
	require.Equal(t, serving, next())

	all, err := client.List(t.Context(), &healthv1.HealthListRequest{})
	require.NoError(t, err)
	require.Len(t, all.GetStatuses(), 3)
	require.Equal(t, serving, all.GetStatuses()[left].GetStatus())
}
