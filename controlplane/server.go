package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/controlplane/xds"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// storeName is the store's file in the state directory.
const storeName = "controlplane.db"

// Times and bounds of the connections from nodes. The pings only tidy up after
// connections that died without a word: leases notice a lost node sooner, and a
// node that comes back has a newer epoch, which replaces its old stream. They are
// patient, since a proxy that takes in many clusters answers late.
const (
	pingInterval = 2 * time.Second
	pingTimeout  = 8 * time.Second
	minPing      = 100 * time.Millisecond // of the nodes' own pings
	maxMessage   = 8 << 20
	maxStreams   = 1024
)

// Server is a control plane.
type Server struct {
	log      *slog.Logger
	listener net.Listener
	store    *store.Store
	registry *registry.Registry
	cache    *xds.Cache
	oversize oversize
}

// New opens the store and the listener. Serve has to be called after, and closes
// both.
func New(ctx context.Context, cfg Config) (*Server, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	listener := cfg.Listener
	if listener == nil {
		var err error
		var lc net.ListenConfig
		if listener, err = lc.Listen(ctx, "tcp", cfg.Listen.String()); err != nil {
			return nil, fmt.Errorf("control plane: %w", err)
		}
	}
	s := &Server{log: log, listener: listener, cache: xds.NewCache(log)}
	if err := s.open(cfg); err != nil {
		listener.Close()
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return s, nil
}

func (s *Server) open(cfg Config) error {
	db, err := store.Open(filepath.Join(cfg.State, storeName))
	if err != nil {
		return err
	}
	if db.Damaged() {
		s.log.Error("store was damaged and is set aside; nodes have to prove their ids", "state", cfg.State)
	}
	r, err := registry.New(registry.Config{Store: db, Logger: s.log, Probe: probeHTTP2, Lease: cfg.Lease, DigestTimeout: cfg.digestTimeout})
	if err != nil {
		db.Close()
		return err
	}
	s.store, s.registry = db, r
	return nil
}

// Addr returns where the control plane listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve serves until ctx ends. All that belongs to the server has ended when it
// returns.
func (s *Server) Serve(ctx context.Context) error {
	defer s.store.Close()
	defer s.registry.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	g := grpc.NewServer(
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.StatsHandler(&s.oversize),
	)
	meshv1.RegisterNodeRegistryServer(g, &nodeService{registry: s.registry})
	meshv1.RegisterServiceRegistryServer(g, &serviceService{done: ctx.Done(), registry: s.registry, store: s.store, cache: s.cache})
	meshv1.RegisterStatusServer(g, &statusService{registry: s.registry, cache: s.cache, counters: s.Counters})
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, xds.NewServer(ctx, s.cache, s.registry.Check))

	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { xds.NewTranslator(s.cache, probeHTTP2, s.log).Run(ctx, s.registry) })
	wg.Go(func() {
		<-ctx.Done()
		g.Stop()
	})
	s.log.Info("control plane serves", "address", s.Addr().String())
	err := g.Serve(s.listener)
	if ctx.Err() != nil {
		return nil
	}
	cancel()
	return fmt.Errorf("control plane: %w", err)
}

// Counters returns what was refused, sent and taken since the start, by name.
func (s *Server) Counters() map[string]uint64 {
	c := s.cache.Counts()
	all := map[string]uint64{
		"xds_streams": c.Streams, "xds_streams_refused": c.RefusedStreams,
		"xds_responses": c.Responses, "xds_acks": c.Acks, "xds_nacks": c.Nacks,
		"xds_resources_set_apart": c.SetApart, "stalls": s.registry.Stalls(),
		"requests_refused_oversize": s.oversize.refused.Load(),
	}
	for reason, n := range s.registry.Refused() {
		all["requests_refused_"+string(reason)] = n
	}
	return all
}
