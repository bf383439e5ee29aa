package grpcadapter_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	ifaceproto "carisma.dev/gateway/codegen/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// interfaces of the sample vehicle.
var interfaces = sync.OnceValues(func() (*ifaceproto.Set, error) {
	return ifaceproto.Load(filepath.Join("..", "..", "vehicles", "cabin", "interfaces"))
})

func instance(t *testing.T, iface, name string, origin bridge.Origin) bridge.Instance {
	t.Helper()
	set, err := interfaces()
	require.NoError(t, err)
	m := set.Interface(iface)
	require.NotNil(t, m)
	return bridge.Instance{Interface: m, Name: name, Origin: origin, Descriptors: set.Descriptors(iface)}
}

const (
	climateName = "cabin.climate.v1.Climate"
	tripName    = "cabin.trip.v1.TripComputer"
)

func climate(t *testing.T, name string) bridge.Instance {
	t.Helper()
	return instance(t, climateName, name, bridge.Origin{
		Protocol: bridge.SOMEIP, Network: "rear-ecu", ServiceID: 0x4001, InstanceID: 1, Major: 1, Node: "rear",
	})
}

// fakeService answers with what a test says.
type fakeService struct {
	iface  *model.Interface
	invoke func(ctx context.Context, m *model.Method, in []byte) (proto.Message, error)
	watch  func(ctx context.Context, e *model.Event, sink bridge.Sink) error
}

func (s *fakeService) Interface() *model.Interface { return s.iface }

func (s *fakeService) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	out, err := s.invoke(ctx, m, in)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(out)
}

func (s *fakeService) Watch(ctx context.Context, e *model.Event, sink bridge.Sink) error {
	return s.watch(ctx, e, sink)
}

// served is a running server.
type served struct {
	*grpcadapter.Server
	t    *testing.T
	addr string
	ctx  context.Context
	run  sync.WaitGroup
}

func serve(t *testing.T) *served {
	t.Helper()
	return serveAs(t, grpcadapter.ServerConfig{Node: "rear"})
}

func serveAs(t *testing.T, cfg grpcadapter.ServerConfig) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{Server: grpcadapter.NewServer(cfg), t: t, ctx: ctx}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	var serveErr error
	s.run.Go(func() { serveErr = s.Serve(ctx, l) })
	t.Cleanup(func() {
		cancel()
		s.run.Wait()
		require.NoError(t, serveErr)
	})
	return s
}

// expose exposes an instance and returns how to take it away.
func (s *served) expose(inst bridge.Instance, svc *fakeService) (gone func(err error)) {
	s.t.Helper()
	svc.iface = inst.Interface
	ctx, cancel := context.WithCancelCause(s.ctx)
	done := make(chan error, 1)
	s.run.Go(func() { done <- s.Expose(ctx, inst, svc) })
	s.eventually(func() bool { return s.Serves(inst.MeshName()) })
	return func(err error) {
		cancel(err)
		require.NoError(s.t, <-done)
	}
}

func (s *served) eventually(ok func() bool) {
	s.t.Helper()
	require.Eventually(s.t, ok, 5*time.Second, time.Millisecond)
}

func (s *served) dial(opts ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	return dial(s.t, s.addr, opts...)
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func unavailable() *status.Error { return status.Unavailable("StopOffer", time.Unix(1700000000, 0)) }
