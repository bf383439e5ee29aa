package grpcadapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	// Callers may compress.
	_ "google.golang.org/grpc/encoding/gzip"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

const (
	// MaxMessageSize is the largest message that a server takes.
	MaxMessageSize = 64 << 20

	windowSize = 1 << 20 // of a stream; fixed, so that no ping measures it
	stopTime   = 500 * time.Millisecond

	// streamWorkers are goroutines whose stacks have grown already. Each call that
	// waits for an ECU has one; those beyond get a new goroutine.
	streamWorkers = 64
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	Node   string       // name of this node
	Logger *slog.Logger // nil for none
	// Mesh: there is more than what is exposed here. Until the first catalogue comes,
	// callers of what is unknown are told to come again.
	Mesh bool
}

// Server is the gateway's gRPC server. It serves the instances that are exposed
// on it, and answers for those that are not: gone, elsewhere or unknown. It
// serves reflection and health for the whole mesh, or for one instance where
// the authority is its mesh name.
type Server struct {
	node string
	log  *slog.Logger
	grpc *grpc.Server
	sets descriptorCache

	watching watching

	mu        sync.Mutex
	locals    map[string]*local // by mesh name
	catalogue []CatalogueEntry
	changed   chan struct{} // closed with each new directory

	current atomic.Pointer[directory]
	early   atomic.Bool // no catalogue came yet
}

// NewServer returns a server that serves nothing yet.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{
		node:    cfg.Node,
		log:     cfg.Logger,
		locals:  map[string]*local{},
		changed: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.current.Store(newDirectory(nil, nil, s.node))
	s.early.Store(cfg.Mesh)
	s.grpc = grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec),
		grpc.UnknownServiceHandler(s.handle),
		grpc.MaxRecvMsgSize(MaxMessageSize),
		grpc.StaticStreamWindowSize(windowSize),
		grpc.StaticConnWindowSize(16*windowSize),
		grpc.NumStreamWorkers(streamWorkers),
		// Proxies may ping, as often as a frozen peer must be noticed.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: 50 * time.Millisecond, PermitWithoutStream: true,
		}),
	)
	r := reflector{s}
	reflectionv1.RegisterServerReflectionServer(s.grpc, r)
	reflectionv1alpha.RegisterServerReflectionServer(s.grpc, reflectorAlpha{r})
	healthv1.RegisterHealthServer(s.grpc, health{server: s})
	carismav1.RegisterCatalogServer(s.grpc, catalog{server: s})
	return s
}

// Serve serves on the listeners until ctx ends, then closes them. Calls and
// streams that run get a moment to end.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	var g errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range listeners {
		g.Go(func() error {
			defer cancel()
			if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("gRPC server on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	<-ctx.Done()
	hard := time.AfterFunc(stopTime, s.grpc.Stop)
	s.grpc.GracefulStop()
	hard.Stop()
	return g.Wait()
}

// Expose makes an instance callable until ctx ends. Then callers are told why
// it went.
func (s *Server) Expose(ctx context.Context, inst bridge.Instance, svc bridge.Service) error {
	name := inst.MeshName()
	l := &local{inst: inst, svc: svc, rpcs: rpcsOf(svc.Interface()), since: time.Now()}
	if err := s.enter(name, l); err != nil {
		return err
	}
	<-ctx.Done()
	reason, since := "it is no longer exposed", time.Now()
	if gone, ok := errors.AsType[*status.Error](context.Cause(ctx)); ok && gone.Reason != "" {
		reason, since = gone.Reason, gone.Since
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locals[name] == l {
		s.locals[name] = &local{inst: inst, reason: reason, since: since}
		s.update()
	}
	return nil
}

func (s *Server) enter(name string, l *local) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.locals[name]; other != nil && other.svc != nil {
		return fmt.Errorf("the name %s is in use by %s", name, describe(other.inst))
	}
	s.locals[name] = l
	s.update()
	return nil
}

func describe(inst bridge.Instance) string {
	o := inst.Origin
	on := bridge.Network{Protocol: o.Protocol, Name: o.Network}
	if o.Protocol == bridge.SOMEIP {
		return fmt.Sprintf("service 0x%04x instance 0x%04x of %s", o.ServiceID, o.InstanceID, on)
	}
	return fmt.Sprintf("instance %q of %s", inst.Name, on)
}

// Serves tells whether the instance with a mesh name can be called here.
func (s *Server) Serves(meshName string) bool {
	t := s.current.Load().targets[meshName]
	return t != nil && t.svc != nil
}

// SetCatalogue tells what is in the mesh. It keeps the entries; nobody may change them.
func (s *Server) SetCatalogue(entries []CatalogueEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catalogue = entries
	s.update()
	s.early.Store(false)
}

// update makes a new directory. The mutex is held.
func (s *Server) update() {
	d := newDirectory(s.locals, s.catalogue, s.node)
	s.current.Store(d)
	close(s.changed)
	s.changed = make(chan struct{})
}

// watchable returns the directory and a channel that is closed when there is a
// newer one.
func (s *Server) watchable() (*directory, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Load(), s.changed
}

// errNoRequest answers a call that ended before its request.
var errNoRequest = status.New(codes.InvalidArgument, "no request message")
