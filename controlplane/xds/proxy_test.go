package xds

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"carisma.dev/gateway/mesh/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const nodeID = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"

// rig is a served cache. Its tests run in a bubble, where "nothing comes" can be
// told from "nothing comes yet".
type rig struct {
	t     *testing.T
	cache *Cache
	conn  *grpc.ClientConn
}

var errCheck = errors.New("no such node")

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cache := NewCache(slog.New(slog.DiscardHandler))
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, NewServer(ctx, cache, func(id api.Identity) error {
		if id.ID == "" {
			return errCheck
		}
		return nil
	}))
	listener := bufconn.Listen(1 << 20)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///central", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		cancel()
		server.Stop()
	})
	return &rig{t: t, cache: cache, conn: conn}
}

// proxy plays an Envoy: it subscribes, takes and refuses as Envoy does.
type proxy struct {
	t      testing.TB
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	end    context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	id      string
	held    map[string]map[string]string // by type: name → version
	asked   map[string]bool
	bad     map[string]bool // versions that it refuses
	silent  bool            // it acknowledges nothing
	waiting []*discoveryv3.DeltaDiscoveryResponse
	got     []*discoveryv3.DeltaDiscoveryResponse
	err     error
}

func (r *rig) connect(id api.Identity, held map[string]map[string]string) *proxy {
	r.t.Helper()
	ctx, cancel := context.WithCancel(api.NewOutgoing(context.Background(), id))
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(r.conn).DeltaAggregatedResources(ctx)
	require.NoError(r.t, err)
	p := &proxy{
		t: r.t, stream: stream, end: cancel, ended: make(chan struct{}), id: id.ID,
		held: map[string]map[string]string{}, asked: map[string]bool{}, bad: map[string]bool{},
	}
	for _, t := range types {
		p.held[t] = map[string]string{}
		maps.Copy(p.held[t], held[t])
	}
	r.t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	go p.receive()
	return p
}

func (p *proxy) receive() {
	defer close(p.ended)
	for {
		resp, err := p.stream.Recv()
		if err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
		p.take(resp)
	}
}

func (p *proxy) take(resp *discoveryv3.DeltaDiscoveryResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, resp)
	if p.silent {
		p.waiting = append(p.waiting, resp)
		return
	}
	p.answer(resp)
}

// answer takes all of a response or none, as Envoy does.
func (p *proxy) answer(resp *discoveryv3.DeltaDiscoveryResponse) {
	t := resp.GetTypeUrl()
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: t, ResponseNonce: resp.GetNonce()}
	for _, r := range resp.GetResources() {
		if p.bad[r.GetVersion()] {
			req.ErrorDetail = &statuspb.Status{Code: 13, Message: "bad " + r.GetName()}
		}
	}
	if req.ErrorDetail == nil {
		for _, r := range resp.GetResources() {
			p.held[t][r.GetName()] = r.GetVersion()
		}
		for _, name := range resp.GetRemovedResources() {
			delete(p.held[t], name)
		}
	}
	_ = p.stream.Send(req)
}

// ask sends the first request of a type; names are for types without a wildcard.
func (p *proxy) ask(typeURL string, names ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names}
	if !p.asked[typeURL] {
		req.InitialResourceVersions = maps.Clone(p.held[typeURL])
	}
	if len(p.asked) == 0 {
		req.Node = &corev3.Node{Id: p.id}
	}
	p.asked[typeURL] = true
	require.NoError(p.t, p.stream.Send(req))
}

func (p *proxy) unsubscribe(typeURL string, names ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(p.t, p.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesUnsubscribe: names}))
}

// names waits until all is quiet and returns what came since the last call: the
// names set, and with a minus those removed, a string for each response.
func (p *proxy) news() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var news []string
	for _, resp := range p.got {
		text := ""
		for _, r := range resp.GetResources() {
			text += " " + r.GetName()
		}
		for _, name := range resp.GetRemovedResources() {
			text += " -" + name
		}
		if text == "" {
			text = " "
		}
		news = append(news, text[1:])
	}
	p.got = nil
	return news
}

// speak acknowledges what was left unanswered.
func (p *proxy) speak() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = false
	for _, resp := range p.waiting {
		p.answer(resp)
	}
	p.waiting = nil
}

func (p *proxy) hush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *proxy) refuse(r *Resource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad[r.Version] = true
}

func (p *proxy) holds(typeURL string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.held[typeURL]))
}

func (p *proxy) error() error {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

const (
	cds = resourcev3.ClusterType
	eds = resourcev3.EndpointType
	lds = resourcev3.ListenerType
	rds = resourcev3.RouteType
)
