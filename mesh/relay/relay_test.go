package relay_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/relay"
	"carisma.dev/gateway/mesh/unixsock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// central answers each delta request by echoing its names as resources.
type central struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
}

func (central) DeltaAggregatedResources(s grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	for n := 'a'; ; n++ {
		req, err := s.Recv()
		if err != nil {
			return err
		}
		resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: req.GetTypeUrl(), Nonce: string(n)}
		for _, name := range req.GetResourceNamesSubscribe() {
			resp.Resources = append(resp.Resources, &discoveryv3.Resource{Name: name})
		}
		if err := s.Send(resp); err != nil {
			return err
		}
	}
}

func serve(t *testing.T, l net.Listener, register func(*grpc.Server)) *grpc.Server {
	t.Helper()
	srv := grpc.NewServer()
	register(srv)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Stop(); <-done })
	return srv
}

func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

type fixture struct {
	relay   *relay.Relay
	address string
	central *grpc.Server
	client  discoveryv3.AggregatedDiscoveryServiceClient
	states  chan relay.State
}

func start(t *testing.T, change ...func(*relay.Config)) *fixture {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fixture{states: make(chan relay.State, 64), address: l.Addr().String()}
	f.serveCentral(t, l)
	cfg := relay.Config{
		Central: dial(t, l.Addr().String()),
		NodeID:  func() string { return "id-1" },
		Changed: func(s relay.State) { f.states <- s },
	}
	for _, c := range change {
		c(&cfg)
	}
	f.relay = relay.New(cfg)
	socket := filepath.Join(t.TempDir(), "ads.sock")
	sl, err := unixsock.Listen(t.Context(), socket, 0o600)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.relay.Serve(ctx, sl); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	f.client = discoveryv3.NewAggregatedDiscoveryServiceClient(dial(t, "unix:"+socket))
	return f
}

func (f *fixture) serveCentral(t *testing.T, l net.Listener) {
	t.Helper()
	f.central = serve(t, l, func(s *grpc.Server) {
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, central{})
	})
}

type stream = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

func (f *fixture) open(ctx context.Context, t *testing.T, id string, names ...string) stream {
	t.Helper()
	s, err := f.client.DeltaAggregatedResources(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: id}, TypeUrl: listenerType, ResourceNamesSubscribe: names,
	}))
	return s
}

func (f *fixture) await(t *testing.T, cond func(relay.State) bool) {
	t.Helper()
	for s := range f.states {
		if cond(s) {
			return
		}
	}
}

func TestRelaysAndReadsAnswers(t *testing.T) {
	f := start(t)
	s := f.open(t.Context(), t, "id-1", "ingress")
	resp, err := s.Recv()
	require.NoError(t, err)
	require.Equal(t, "ingress", resp.GetResources()[0].GetName())

	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: listenerType, ResponseNonce: resp.GetNonce()}))
	f.await(t, func(s relay.State) bool { return !s.Types[listenerType].Acked.IsZero() })

	resp, err = s.Recv()
	require.NoError(t, err)
	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: listenerType, ResponseNonce: resp.GetNonce(), ErrorDetail: &rpcstatus.Status{Message: "bad"},
	}))
	f.await(t, func(s relay.State) bool { return s.Types[listenerType].Reason == "bad" })
	require.False(t, f.relay.State().Configured(time.Time{}), "routes are missing")
}

// CAR-3, CAR-13: one Envoy, and with the id of this node.
func TestRefusesOthers(t *testing.T) {
	f := start(t)
	_, err := f.open(t.Context(), t, "id-2").Recv()
	require.Equal(t, codes.PermissionDenied, status.Code(err))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := f.open(ctx, t, "id-1", "x")
	_, err = s.Recv()
	require.NoError(t, err)
	_, err = f.open(t.Context(), t, "id-1").Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Equal(t, 2, f.relay.State().Refused)

	cancel() // a restarted Envoy takes over
	_, err = f.open(t.Context(), t, "id-1", "x").Recv()
	require.NoError(t, err)
}

func TestCentralAway(t *testing.T) {
	f := start(t)
	s := f.open(t.Context(), t, "id-1", "x")
	_, err := s.Recv()
	require.NoError(t, err)
	f.central.Stop()
	_, err = s.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = f.open(t.Context(), t, "id-1", "x").Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	f.await(t, func(s relay.State) bool { return !s.Connected && !s.Since.IsZero() })
}
