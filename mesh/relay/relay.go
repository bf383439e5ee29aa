// Package relay carries the ADS stream of a node's Envoy to the control plane:
// Envoy asks over a Unix socket, the relay forwards the bytes over the node's own
// connection to central, which adds the node's id and epoch (CAR-12). So the
// bootstrap holds no address and no secret, and central sees nodes, not Envoys.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const ads = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"

// The methods that are relayed.
const (
	deltaMethod  = ads + "DeltaAggregatedResources"
	streamMethod = ads + "StreamAggregatedResources"
)

const (
	// takeOver is how long a new stream waits for the end of the one before: of
	// an Envoy that was restarted the old stream may end a moment later.
	takeOver = 250 * time.Millisecond
	// maxMessage bounds an xDS message; 500 services in one response are 150 kB.
	maxMessage = 64 << 20
)

// Config configures a Relay.
type Config struct {
	// Central reaches the control plane with the node's id. While it is away a
	// new stream has to fail with UNAVAILABLE at once.
	Central grpc.ClientConnInterface
	// Await waits until central is back. Without it Envoy's stream ends UNAVAILABLE
	// while central is away.
	Await func(context.Context) error
	// Store is a file for what Envoy acknowledged; empty for none.
	Store string
	// NodeID returns the id that the node holds.
	NodeID func() string
	// Changed, if not nil, is told of each change of the State, one at a time. It
	// must not block and not call the relay.
	Changed func(State)
	// Clusters, if not nil, is told for which clusters Envoy took an assignment of
	// endpoints, and whether there is an endpoint in it: from then on calls have a
	// path, or have none any more. The rules of Changed hold.
	Clusters func(map[string]bool)
	Logger   *slog.Logger
}

// Relay serves ADS to the one Envoy of the node.
type Relay struct {
	cfg   Config
	log   *slog.Logger
	slot  chan struct{} // held by the one live stream (CAR-3)
	state tracker
	kept  *kept
}

// New returns a relay that Serve runs.
func New(cfg Config) *Relay {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	log = log.With("component", "relay")
	return &Relay{
		cfg:   cfg,
		log:   log,
		slot:  make(chan struct{}, 1),
		kept:  newKept(cfg.Store, log),
		state: tracker{changed: cfg.Changed, clusters: cfg.Clusters},
	}
}

// State returns what is known of the stream.
func (r *Relay) State() State { return r.state.get() }

// Serve answers on the listener until ctx ends, and closes it. It must be called
// once.
func (r *Relay) Serve(ctx context.Context, l net.Listener) error {
	if err := r.kept.load(); err != nil {
		r.log.Warn("what was kept is lost", "error", err)
	}
	var g errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	if k := r.kept.keeper; k != nil {
		g.Go(func() error {
			k.Run(ctx)
			return nil
		})
	}
	g.Go(func() error {
		defer cancel()
		return r.serve(ctx, l)
	})
	return g.Wait()
}

func (r *Relay) serve(ctx context.Context, l net.Listener) error {
	srv := grpc.NewServer(
		grpc.ForceServerCodecV2(raw),
		grpc.UnknownServiceHandler(r.handle),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		// Envoy may ping as often as it likes, or the stream would flap.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: time.Millisecond, PermitWithoutStream: true,
		}),
	)
	stop := context.AfterFunc(ctx, srv.Stop) // Envoy keeps what it has and asks again
	defer stop()
	err := srv.Serve(l)
	srv.Stop()
	if errors.Is(err, grpc.ErrServerStopped) || ctx.Err() != nil {
		return nil
	}
	return err
}

func (r *Relay) handle(_ any, down grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(down)
	if method != deltaMethod && method != streamMethod {
		return status.Errorf(codes.Unimplemented, "%s is not relayed", method)
	}
	var first []byte
	if err := down.RecvMsg(&first); err != nil {
		return err
	}
	f := formOf(method)
	req, err := f.request(first)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "first request: %v", err)
	}
	if held := r.cfg.NodeID(); req.nodeID != held {
		r.refuse()
		return status.Errorf(codes.PermissionDenied, "node id %q is not the one that this node holds", req.nodeID)
	}
	if !r.take(down.Context()) {
		r.refuse()
		// CAR-3: exactly one proxy per HPC.
		return status.Errorf(codes.ResourceExhausted, "this node has one Envoy, and another stream is live")
	}
	defer func() { <-r.slot }()
	err = r.forward(down, method, f, req, first)
	r.log.Info("ads stream ended", "reason", err)
	return err
}

func (r *Relay) refuse() {
	r.state.update(func(s *State) { s.Refused++ })
}

func (r *Relay) take(ctx context.Context) bool {
	timer := time.NewTimer(takeOver)
	defer timer.Stop()
	select {
	case r.slot <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// forward joins the stream of Envoy with one to central until either ends.
func (r *Relay) forward(down grpc.ServerStream, method string, f form, req request, first []byte) error {
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	up, err := r.open(ctx, method, req)
	switch {
	case err != nil:
		return r.away(err)
	case up == nil:
		return r.serveKept(down, req, first)
	case r.cfg.NodeID() != req.nodeID: // central gave another one meanwhile
		return status.Error(codes.Unavailable, "the node has another id now")
	}
	r.state.connected()
	defer r.state.disconnected()

	s := r.newSession(f, req.nodeID)
	if err := s.toCentral(up, first); err != nil {
		return r.away(err)
	}
	ended := make(chan error, 2)
	// This one ends with the stream of Envoy, that is after the handler returned.
	go func() { ended <- s.requests(down, up) }()
	var pump sync.WaitGroup
	pump.Go(func() { ended <- s.responses(up, down) })
	defer pump.Wait()
	defer cancel()
	err = <-ended
	return r.away(err)
}

// away turns the end of the stream to central into what Envoy is told: it tries
// again whatever the status is, and the status shows in its log.
func (r *Relay) away(err error) error {
	switch code := status.Code(err); {
	case err == nil, errors.Is(err, io.EOF):
		return status.Error(codes.Unavailable, "the control plane ended the stream")
	case code == codes.Canceled, code == codes.Unknown:
		return status.Error(codes.Unavailable, fmt.Sprintf("the control plane is away: %v", err))
	default:
		return err
	}
}
