package controlplane

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// CAR-6, 12, 13, 36: every request but the first carries the id, and each wrong one
// has its own answer.
func TestRequestsWithoutIdentity(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	unknown := api.Identity{ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Epoch: 1}
	stale := api.Identity{ID: a.id.ID, Epoch: a.id.Epoch - 1}
	ahead := api.Identity{ID: a.id.ID, Epoch: a.id.Epoch + 1}
	for want, ctx := range map[codes.Code]context.Context{
		codes.Unauthenticated:    t.Context(),
		codes.NotFound:           api.NewOutgoing(t.Context(), unknown),
		codes.Aborted:            api.NewOutgoing(t.Context(), stale),
		codes.FailedPrecondition: api.NewOutgoing(t.Context(), ahead),
	} {
		_, err := a.services().Synchronize(ctx, &meshv1.SynchronizeRequest{})
		require.Equal(t, want, status.Code(err))
		_, err = a.services().Update(ctx, &meshv1.UpdateRequest{})
		require.Equal(t, want, status.Code(err))
		_, err = a.services().PutDescriptors(ctx, &meshv1.PutDescriptorsRequest{})
		require.Equal(t, want, status.Code(err))
		stream, err := meshv1.NewNodeRegistryClient(p.conn).KeepAlive(ctx)
		require.NoError(t, err)
		_, err = stream.Recv()
		require.Equal(t, want, status.Code(err))

		// Who only reads needs no id, but a wrong one is wrong.
		if want == codes.Unauthenticated {
			want = codes.OK
		}
		_, err = a.services().ListServices(ctx, &meshv1.ListServicesRequest{})
		require.Equal(t, want, status.Code(err))
		_, err = meshv1.NewNodeRegistryClient(p.conn).ListNodes(ctx, &meshv1.ListNodesRequest{})
		require.Equal(t, want, status.Code(err))
		_, err = meshv1.NewStatusClient(p.conn).GetRoutes(ctx, &meshv1.GetRoutesRequest{})
		require.Equal(t, want, status.Code(err))
		_, err = meshv1.NewStatusClient(p.conn).GetProxies(ctx, &meshv1.GetProxiesRequest{})
		require.Equal(t, want, status.Code(err))
	}
	require.Equal(t, uint64(4), p.Counters()["requests_refused_no_identity"])
}

// CAR-7, CAR-9.
func TestListNodes(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "rear", "127.0.0.2")
	p.join(t, "center", "127.0.0.1")
	nodes := meshv1.NewNodeRegistryClient(p.conn)
	resp, err := nodes.ListNodes(t.Context(), &meshv1.ListNodesRequest{})
	require.NoError(t, err)
	require.Len(t, resp.GetNodes(), 2)
	rear := resp.GetNodes()[1]
	require.Equal(t, a.id.ID, rear.GetId())
	require.Equal(t, "127.0.0.2", rear.GetAddress())
	require.Equal(t, meshv1.NodeState_NODE_UP, rear.GetState())
	require.True(t, proto.Equal(a.req.GetProxy(), rear.GetProxy()))

	for _, address := range []string{"", "nonsense", "10.0.0", "fe80::1%eth0"} {
		_, err := nodes.Register(t.Context(), &meshv1.RegisterRequest{Name: "third", Address: address})
		require.Equal(t, codes.InvalidArgument, status.Code(err), address)
	}
}

// CAR-10: the superseded agent is told at once.
func TestSupersededAgent(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "rear", "127.0.0.2")
	stream, err := meshv1.NewNodeRegistryClient(p.conn).KeepAlive(a.ctx())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&meshv1.KeepAliveRequest{}))
	_, err = stream.Recv()
	require.NoError(t, err)
	again := proto.CloneOf(a.req)
	again.ResumeId, again.ResumeEpoch = a.id.ID, a.id.Epoch
	_, err = meshv1.NewNodeRegistryClient(p.conn).Register(t.Context(), again)
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Aborted, status.Code(err))
}

type watch struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[meshv1.WatchServicesResponse]
}

func (p *plane) watch(t *testing.T, held bool) watch {
	t.Helper()
	stream, err := meshv1.NewServiceRegistryClient(p.conn).WatchServices(t.Context(), &meshv1.WatchServicesRequest{Held: held})
	require.NoError(t, err)
	return watch{t, stream}
}

// next returns the names set and, with a minus, removed.
func (w watch) next() (snapshot bool, names []string) {
	w.t.Helper()
	resp, err := w.stream.Recv()
	require.NoError(w.t, err)
	for _, s := range resp.GetSet() {
		text := s.GetNodeName() + " " + s.GetService().GetInstance()
		if s.GetService().GetState() == meshv1.InstanceState_INSTANCE_DOWN {
			text += " down: " + s.GetService().GetReason()
		}
		if s.GetStandby() {
			text += " standby"
		}
		names = append(names, text)
	}
	for _, k := range resp.GetRemoved() {
		names = append(names, "-"+strings.SplitN(k.GetName(), ".", 2)[0])
	}
	return resp.GetSnapshot(), names
}

func TestWatchServices(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	center, rear := p.join(t, "center", "127.0.0.1"), p.join(t, "rear", "127.0.0.2")
	rear.sync(bridged(rear, climate, "left", 1))
	w := p.watch(t, false)
	snapshot, names := w.next()
	require.True(t, snapshot)
	require.Equal(t, []string{"rear left"}, names)

	center.sync(bridged(center, climate, "left", 1))
	snapshot, names = w.next()
	require.False(t, snapshot)
	require.Equal(t, []string{"center left", "rear left standby"}, names)
	center.remove("left." + lower(climate))
	_, names = w.next()
	require.Equal(t, []string{"rear left", "-left"}, names)
	rear.set(down(bridged(rear, climate, "left", 1), "StopOffer"))
	_, names = w.next()
	require.Equal(t, []string{"rear left down: StopOffer"}, names)
	rear.remove("left." + lower(climate))
	_, names = w.next()
	require.Equal(t, []string{"-left"}, names)
}

// CAR-50: a watcher that holds services hears nothing from a control plane that
// just started, before the others had the time to speak.
func TestWatchHeld(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	p := startPlane(t, state)
	a := p.join(t, "center", "127.0.0.1")
	a.sync(native(trip, "", "127.0.0.1:1"))
	p.stop()
	p = startPlane(t, state)
	held, fresh := p.watch(t, true), p.watch(t, false)
	_, names := fresh.next()
	require.Empty(t, names)
	a.plane = p
	a.keepAlive()
	a.sync(native(trip, "", "127.0.0.1:1"))
	snapshot, names := held.next()
	require.True(t, snapshot)
	require.Equal(t, []string{"center "}, names)
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{{Name: proto.String("a.proto")}}})
	require.NoError(t, err)
	put, err := a.services().PutDescriptors(a.ctx(), &meshv1.PutDescriptorsRequest{DescriptorSet: set})
	require.NoError(t, err)
	got, err := a.services().GetDescriptors(t.Context(), &meshv1.GetDescriptorsRequest{Hash: put.GetHash()})
	require.NoError(t, err)
	require.Equal(t, set, got.GetDescriptorSet())
	_, err = a.services().GetDescriptors(t.Context(), &meshv1.GetDescriptorsRequest{Hash: "x"})
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = a.services().PutDescriptors(a.ctx(), &meshv1.PutDescriptorsRequest{DescriptorSet: []byte{0xFF}})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = a.services().PutDescriptors(a.ctx(), &meshv1.PutDescriptorsRequest{DescriptorSet: make([]byte, maxMessage+1)})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

// CAR-18, 19, 21.
func TestGetRoutes(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	center, rear := p.join(t, "center", "127.0.0.1"), p.join(t, "rear", "127.0.0.2")
	center.sync(native(climate, "both", "127.0.0.1:1"))
	gone := down(native(climate, "gone", "127.0.0.1:3"), "stopped")
	rear.sync(native(climate, "both", "127.0.0.1:2"), native(climate, "rear", "127.0.0.1:4"), gone)
	resp, err := meshv1.NewStatusClient(p.conn).GetRoutes(t.Context(), &meshv1.GetRoutesRequest{Node: "center"})
	require.NoError(t, err)
	require.Len(t, resp.GetNodes(), 1)
	var lines []string
	for _, r := range resp.GetNodes()[0].GetEgress() {
		lines = append(lines, strings.TrimSpace(strings.Split(r.GetName(), ".")[0]+" "+r.GetClass().String()+" "+r.GetEndpoint()+" "+r.GetTargetNode()))
	}
	require.Equal(t, []string{
		"both LOCAL 127.0.0.1:1 center",
		"gone GONE",
		"rear REMOTE " + rear.ingress() + " rear",
	}, lines)
	require.Len(t, resp.GetNodes()[0].GetIngress(), 1)
	all, err := meshv1.NewStatusClient(p.conn).GetRoutes(t.Context(), &meshv1.GetRoutesRequest{})
	require.NoError(t, err)
	require.Len(t, all.GetNodes(), 2)
	_, err = meshv1.NewStatusClient(p.conn).GetRoutes(t.Context(), &meshv1.GetRoutesRequest{Node: "x"})
	require.Equal(t, codes.NotFound, status.Code(err))
}

func TestListenFails(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := netip.MustParseAddrPort(l.Addr().String())
	require.ErrorContains(t, Run(t.Context(), Config{Listen: taken, State: t.TempDir()}), "address already in use")
	require.ErrorContains(t, Run(t.Context(), Config{Listen: netip.MustParseAddrPort("127.0.0.1:0"), State: "/dev/null/x"}), "store")
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, Run(ctx, Config{Listen: netip.MustParseAddrPort("127.0.0.1:0"), State: t.TempDir()}))
}

// A connection that the kernel accepts for a frozen process is no answer.
func TestProbe(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ingress := netip.MustParseAddrPort(l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, probeHTTP2(ctx, ingress))

	s := grpc.NewServer()
	go func() { _ = s.Serve(l) }()
	require.NoError(t, probeHTTP2(t.Context(), ingress))
	s.Stop()
	require.Error(t, probeHTTP2(t.Context(), ingress))

	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	go func() {
		if conn, err := other.Accept(); err == nil {
			_, _ = conn.Write([]byte("220 not HTTP/2\r\n"))
			conn.Close()
		}
	}()
	require.Error(t, probeHTTP2(t.Context(), netip.MustParseAddrPort(other.Addr().String())))
}

// A watcher that takes nothing is cut off, and harms nobody before.
func TestStuckWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := &stuckStream{release: make(chan struct{})}
		w := &watcher{stream: stuck}
		err := w.send(&meshv1.WatchServicesResponse{})
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		close(stuck.release)
	})
}

type stuckStream struct {
	grpc.ServerStreamingServer[meshv1.WatchServicesResponse]
	release chan struct{}
}

func (s *stuckStream) Send(*meshv1.WatchServicesResponse) error {
	<-s.release
	return nil
}
