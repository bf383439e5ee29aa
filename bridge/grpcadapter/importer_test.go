package grpcadapter_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
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
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// trips is a native gRPC service, as the egress listener reaches it.
type trips struct {
	tripv1.UnimplementedTripComputerServer
	mu        sync.Mutex
	authority []string
	instance  []string
	streams   chan struct{} // one for each item
}

func (s *trips) seen(ctx context.Context) {
	md, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authority, s.instance = md[":authority"], md[grpcadapter.InstanceHeader]
}

func (s *trips) Leg(ctx context.Context, req *tripv1.TripComputerLegRequest) (*tripv1.TripComputerLegResponse, error) {
	s.seen(ctx)
	if req.GetName() != "commute" {
		return nil, grpcstatus.Errorf(codes.NotFound, "no leg %q", req.GetName())
	}
	return &tripv1.TripComputerLegResponse{Kilometres: 42.5, Waypoints: []string{"Home", "Office"}}, nil
}

func (s *trips) WatchConsumption(_ *tripv1.TripComputerWatchConsumptionRequest,
	stream grpc.ServerStreamingServer[tripv1.TripComputerWatchConsumptionResponse],
) error {
	s.seen(stream.Context())
	for km := uint32(600); ; km-- {
		select {
		case <-s.streams:
		case <-stream.Context().Done():
			return nil
		}
		if err := stream.Send(&tripv1.TripComputerWatchConsumptionResponse{Litres: 6.5, RangeKm: km}); err != nil {
			return err
		}
	}
}

// egress serves trips on a socket and returns how to stop it.
func egress(t *testing.T, path string, s *trips) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	srv := grpc.NewServer()
	tripv1.RegisterTripComputerServer(srv, s)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return func() {
		srv.Stop()
		<-done
	}
}

// imports runs an importer and returns what it offers.
func imports(t *testing.T, path string) (*grpcadapter.Importer, <-chan bridge.Offer) {
	t.Helper()
	imp, err := grpcadapter.NewImporter(grpcadapter.ImporterConfig{Egress: "unix:" + path})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	offers := make(chan bridge.Offer)
	done := make(chan error, 1)
	go func() { done <- imp.Import(ctx, offers) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, imp.Close())
	})
	return imp, offers
}

func method(t *testing.T, iface *model.Interface, rpc string) *model.Method {
	t.Helper()
	for _, m := range iface.AllMethods() {
		if m.RPC == rpc {
			return m
		}
	}
	t.Fatalf("no rpc %s", rpc)
	return nil
}

func TestImportCallsThroughEgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "egress.sock")
	native := &trips{streams: make(chan struct{})}
	stop := egress(t, path, native)
	imp, offers := imports(t, path)
	imp.SetCatalogue([]grpcadapter.CatalogueEntry{tripEntry(t)})
	o := <-offers
	require.Equal(t, "default", o.Name)
	require.Equal(t, tripName, o.Interface.FullName())
	require.NotNil(t, o.Service)

	leg := method(t, o.Interface, "Leg")
	in := args(t, &tripv1.TripComputerLegRequest{Name: "commute"})
	out, err := o.Service.Invoke(t.Context(), leg, in)
	require.NoError(t, err)
	var resp tripv1.TripComputerLegResponse
	require.NoError(t, proto.Unmarshal(out, &resp))
	require.InDelta(t, 42.5, resp.GetKilometres(), 0)
	require.Equal(t, []string{"default.cabin.trip.v1.tripcomputer"}, native.authority)
	require.Equal(t, []string{"default"}, native.instance)

	_, err = o.Service.Invoke(t.Context(), leg, nil)
	var failed *status.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, codes.NotFound, failed.Code)

	// A stream that ends with its connection is watched again.
	ctx, cancel := context.WithCancel(t.Context())
	items := make(chan bridge.Item, 16)
	ends := make(chan error, 16)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		bridge.KeepWatching(ctx, o.Service, o.Interface.Events[0], func(it bridge.Item) { items <- it },
			func(err error) { ends <- err })
	}()
	native.streams <- struct{}{}
	it := <-items
	require.Equal(t, args(t, &tripv1.TripComputerWatchConsumptionResponse{Litres: 6.5, RangeKm: 600}), it.Payload)
	require.WithinDuration(t, time.Now(), it.Received, time.Minute)
	stop()
	require.ErrorAs(t, <-ends, &failed)
	stop = egress(t, path, native)
	native.streams <- struct{}{}
	<-items
	cancel()
	<-watched
	stop()
	_, err = o.Service.Invoke(t.Context(), leg, in)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, codes.Unavailable, failed.Code)
}

func TestImportFollowsCatalogue(t *testing.T) {
	imp, offers := imports(t, filepath.Join(t.TempDir(), "egress.sock"))
	up := tripEntry(t)
	bridged := up
	bridged.Name, bridged.Origin.Protocol = "other.cabin.trip.v1.tripcomputer", bridge.SOMEIP
	unknown := up
	unknown.Name, unknown.Descriptors = "unknown.cabin.trip.v1.tripcomputer", nil
	set := func(entries ...grpcadapter.CatalogueEntry) { imp.SetCatalogue(entries) }

	set(bridged, unknown, up)
	o := <-offers
	require.NotNil(t, o.Service)

	moved := up
	moved.NodeName = "rear"
	set(moved, bridged) // no offer: the mesh reaches it there

	down := up
	down.Up, down.Reason, down.Since = false, "its node is lost", time.Unix(7, 0)
	set(down)
	o = <-offers
	require.Nil(t, o.Service)
	require.Equal(t, "its node is lost", o.Reason)
	require.Equal(t, time.Unix(7, 0), o.Since)

	replica := up
	replica.NodeName = "front"
	set(down, replica)
	require.NotNil(t, (<-offers).Service)
	set()
	o = <-offers
	require.Nil(t, o.Service)
	require.Equal(t, "it was removed from the mesh", o.Reason)
}
