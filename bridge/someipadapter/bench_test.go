package someipadapter_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// BenchmarkBridgedCall is one call at a time: gRPC client → gateway → SOME/IP
// ECU on loopback and back.
func BenchmarkBridgedCall(b *testing.B) {
	d := newDomain(b)
	g := newGateway(b, d, climateName)
	_, err := newECU(d.host(b, 2))
	require.NoError(b, err)
	g.up(leftName, true)
	b.Run("tcp", func(b *testing.B) { boost(b, climatev1.NewClimateClient(g.conn)) })

	path := filepath.Join(b.TempDir(), "gateway.sock")
	l, err := net.Listen("unix", path)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = g.mesh.Serve(ctx, l) })
	defer run.Wait()
	defer cancel()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	defer conn.Close()
	b.Run("unix", func(b *testing.B) { boost(b, climatev1.NewClimateClient(conn)) })
}

func boost(b *testing.B, client climatev1.ClimateClient) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r, err := client.Boost(b.Context(), &climatev1.ClimateBoostRequest{Seconds: 90})
		if err != nil || r.GetGranted() != 90 {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkSOMEIPCall is the part of BenchmarkBridgedCall behind the gateway.
func BenchmarkSOMEIPCall(b *testing.B) {
	d := newDomain(b)
	_, err := newECU(d.host(b, 2))
	require.NoError(b, err)
	c, err := d.host(b, 3).Client(runtime.InstanceKey{Service: 0x4001, Instance: 1, Major: 1})
	require.NoError(b, err)
	defer c.Close()
	eventually(b, func() bool { return c.Availability().Up }, "offer")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), 4, false, []byte{0, 90}); err != nil {
			b.Fatal(err)
		}
	}
}

// nativeClimate answers without a gateway.
type nativeClimate struct {
	climatev1.UnimplementedClimateServer
}

func (nativeClimate) Boost(_ context.Context, r *climatev1.ClimateBoostRequest) (*climatev1.ClimateBoostResponse, error) {
	return &climatev1.ClimateBoostResponse{Granted: r.GetSeconds()}, nil
}

// BenchmarkGRPCCall is plain grpc-go over a Unix socket, to compare with.
func BenchmarkGRPCCall(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s.sock")
	l, err := net.Listen("unix", path)
	require.NoError(b, err)
	s := grpc.NewServer()
	climatev1.RegisterClimateServer(s, nativeClimate{})
	var run sync.WaitGroup
	run.Go(func() { _ = s.Serve(l) })
	defer run.Wait()
	defer s.Stop()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	defer conn.Close()
	boost(b, climatev1.NewClimateClient(conn))
}
