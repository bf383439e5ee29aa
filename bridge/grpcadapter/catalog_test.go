package grpcadapter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

// The catalogue is of the whole mesh; of what this node serves it knows the state
// before the control plane tells it.
func TestCatalog(t *testing.T) {
	s := serve(t)
	const left, trip = "left.cabin.climate.v1.climate", "default.cabin.trip.v1.tripcomputer"
	other := tripEntry(t)
	replica := other
	replica.NodeName, replica.Up, replica.Reason = "front", false, "StopOffer"
	gone := s.expose(climate(t, "left"), describe("left"))
	s.SetCatalogue([]grpcadapter.CatalogueEntry{other, replica})
	client := carismav1.NewCatalogClient(s.dial())

	list, err := client.List(t.Context(), &carismav1.CatalogListRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetInstances(), 3)
	in := list.GetInstances()[2]
	require.Equal(t, left, in.GetName())
	require.Equal(t, "rear", in.GetNode())
	require.Equal(t, carismav1.CatalogState_CATALOG_UP, in.GetState())
	require.Equal(t, "SOME/IP", in.GetProtocol())
	require.EqualValues(t, 0x4001, in.GetServiceId())
	require.WithinDuration(t, time.Now(), in.GetSince().AsTime(), time.Minute)
	list, err = client.List(t.Context(), &carismav1.CatalogListRequest{Interface: tripName})
	require.NoError(t, err)
	require.Len(t, list.GetInstances(), 2)

	watch, err := client.Watch(t.Context(), &carismav1.CatalogWatchRequest{})
	require.NoError(t, err)
	next := func() *carismav1.CatalogWatchResponse {
		resp, err := watch.Recv()
		require.NoError(t, err)
		return resp
	}
	first := next()
	require.True(t, first.GetSnapshot())
	require.Len(t, first.GetSet(), 3)

	gone(unavailable())
	change := next()
	require.Len(t, change.GetSet(), 1)
	require.Equal(t, carismav1.CatalogState_CATALOG_DOWN, change.GetSet()[0].GetState())
	require.NotEmpty(t, change.GetSet()[0].GetReason())

	s.SetCatalogue([]grpcadapter.CatalogueEntry{other})
	change = next()
	require.False(t, change.GetSnapshot())
	require.Empty(t, change.GetSet())
	require.Len(t, change.GetRemoved(), 1)
	require.Equal(t, trip, change.GetRemoved()[0].GetName())
	require.Equal(t, "front", change.GetRemoved()[0].GetNode())
}
