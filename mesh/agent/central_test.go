package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// central is a control plane of one node: it takes what the agent says, and
// checks the identity of each request as mesh.proto says.
type central struct {
	meshv1.UnimplementedNodeRegistryServer
	meshv1.UnimplementedServiceRegistryServer

	mu        sync.Mutex
	id        api.Identity
	epoch     uint64
	registers []*meshv1.RegisterRequest
	failures  map[string]error // next answer of a method
	synced    int
	services  map[string]*meshv1.ServiceInstance
	updates   []*meshv1.UpdateRequest
	refuse    map[string]string
	sets      map[string][]byte
	gets      int
	mute      bool // do not answer heartbeats
	end       chan struct{}
	endErr    error
	watchers  map[chan *meshv1.WatchServicesResponse]struct{}
	others    []*meshv1.MeshService
	held      []bool        // of each watch
	before    []int         // how often the node had synchronized before each watch
	news      chan struct{} // something happened

	addr string
	srv  *grpc.Server
	wg   sync.WaitGroup
}

func newCentral(t *testing.T) *central {
	t.Helper()
	c := &central{
		failures: map[string]error{}, services: map[string]*meshv1.ServiceInstance{},
		refuse: map[string]string{}, sets: map[string][]byte{}, end: make(chan struct{}),
		watchers: map[chan *meshv1.WatchServicesResponse]struct{}{},
		news:     make(chan struct{}, 1),
	}
	c.start(t, "127.0.0.1:0")
	t.Cleanup(c.stop)
	return c
}

func (c *central) start(t *testing.T, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	c.addr = l.Addr().String()
	c.srv = grpc.NewServer(grpc.WaitForHandlers(true))
	meshv1.RegisterNodeRegistryServer(c.srv, c)
	meshv1.RegisterServiceRegistryServer(c.srv, c)
	c.wg.Go(func() { _ = c.srv.Serve(l) })
}

func (c *central) stop() {
	c.srv.Stop()
	c.wg.Wait()
}

// await waits for a condition on the state.
func (c *central) await(t *testing.T, cond func() bool) {
	t.Helper()
	for {
		c.mu.Lock()
		ok := cond()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.news:
		case <-t.Context().Done():
			t.Fatal("not reached")
		}
	}
}

func (c *central) happened() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *central) lock(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// check is called under the lock.
func (c *central) check(ctx context.Context, method string) error {
	defer c.happened()
	if err := c.failures[method]; err != nil {
		delete(c.failures, method)
		return err
	}
	id, ok := api.FromIncoming(ctx)
	switch {
	case !ok:
		return status.Error(codes.Unauthenticated, "no id")
	case id != c.id:
		return status.Errorf(codes.Aborted, "stale identity %v", id)
	}
	return nil
}

func (c *central) Register(ctx context.Context, req *meshv1.RegisterRequest) (*meshv1.RegisterResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.happened()
	c.registers = append(c.registers, req)
	if _, ok := api.FromIncoming(ctx); ok {
		return nil, status.Error(codes.Internal, "a registration has no identity")
	}
	if err := c.failures["Register"]; err != nil {
		delete(c.failures, "Register")
		return nil, err
	}
	resumed := req.GetResumeId() != ""
	if resumed && req.GetResumeId() != c.id.ID {
		return nil, status.Error(codes.NotFound, "unknown id")
	}
	c.epoch++
	c.id.Epoch = c.epoch
	if !resumed {
		c.id.ID = fmt.Sprintf("id-%d", c.epoch)
	}
	return &meshv1.RegisterResponse{Id: c.id.ID, Epoch: c.id.Epoch, Resumed: resumed}, nil
}

func (c *central) KeepAlive(s grpc.BidiStreamingServer[meshv1.KeepAliveRequest, meshv1.KeepAliveResponse]) error {
	beats := make(chan error)
	go func() {
		for {
			_, err := s.Recv()
			select {
			case beats <- err:
			case <-s.Context().Done():
			}
			if err != nil {
				return
			}
		}
	}()
	c.mu.Lock()
	end := c.end
	c.mu.Unlock()
	for {
		select {
		case <-s.Context().Done():
			return s.Context().Err()
		case <-end:
			return c.endErr
		case err := <-beats:
			if err != nil {
				return err
			}
		}
		c.mu.Lock()
		mute, err := c.mute, c.check(s.Context(), "KeepAlive")
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if !mute {
			if err := s.Send(&meshv1.KeepAliveResponse{}); err != nil {
				return err
			}
		}
	}
}

func (c *central) refusals(services []*meshv1.ServiceInstance) (out []*meshv1.Refusal) {
	for _, s := range services {
		if why, ok := c.refuse[s.GetName()]; ok {
			out = append(out, &meshv1.Refusal{Name: s.GetName(), Reason: why})
			continue
		}
		c.services[s.GetName()] = s
	}
	return out
}

func (c *central) Synchronize(ctx context.Context, req *meshv1.SynchronizeRequest) (*meshv1.SynchronizeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(ctx, "Synchronize"); err != nil {
		return nil, err
	}
	c.synced++
	clear(c.services)
	return &meshv1.SynchronizeResponse{Refusals: c.refusals(req.GetServices())}, nil
}

func (c *central) Update(ctx context.Context, req *meshv1.UpdateRequest) (*meshv1.UpdateResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(ctx, "Update"); err != nil {
		return nil, err
	}
	c.updates = append(c.updates, req)
	for _, name := range req.GetRemove() {
		delete(c.services, name)
	}
	return &meshv1.UpdateResponse{Refusals: c.refusals(req.GetSet())}, nil
}

func (c *central) PutDescriptors(ctx context.Context, req *meshv1.PutDescriptorsRequest) (*meshv1.PutDescriptorsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(ctx, "PutDescriptors"); err != nil {
		return nil, err
	}
	hash := hash(req.GetDescriptorSet())
	c.sets[hash] = req.GetDescriptorSet()
	return &meshv1.PutDescriptorsResponse{Hash: hash}, nil
}

func (c *central) GetDescriptors(ctx context.Context, req *meshv1.GetDescriptorsRequest) (*meshv1.GetDescriptorsResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(ctx, "GetDescriptors"); err != nil {
		return nil, err
	}
	c.gets++
	set, ok := c.sets[req.GetHash()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such descriptors")
	}
	return &meshv1.GetDescriptorsResponse{DescriptorSet: set}, nil
}

func (c *central) WatchServices(req *meshv1.WatchServicesRequest, s grpc.ServerStreamingServer[meshv1.WatchServicesResponse]) error {
	c.mu.Lock()
	if err := c.check(s.Context(), "WatchServices"); err != nil {
		c.mu.Unlock()
		return err
	}
	c.held = append(c.held, req.GetHeld())
	c.before = append(c.before, c.synced)
	news := make(chan *meshv1.WatchServicesResponse, 16)
	news <- &meshv1.WatchServicesResponse{Snapshot: true, Set: c.others}
	c.watchers[news] = struct{}{}
	c.mu.Unlock()
	for {
		select {
		case <-s.Context().Done():
			return s.Context().Err()
		case n := <-news:
			if err := s.Send(n); err != nil {
				return err
			}
		}
	}
}

func (c *central) tell(n *meshv1.WatchServicesResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w <- n
	}
}

func hash(set []byte) string {
	sum := sha256.Sum256(set)
	return hex.EncodeToString(sum[:])
}
