// Package agent is the node's side of the mesh contract: it registers the node,
// keeps its lease, owns the list of the node's services and follows the services
// of the whole mesh.
//
// The list that the node's parts set is what counts. After each connect the
// control plane gets all of it, then only changes (CAR-15), so that a restart of
// either side converges.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/durable"
)

// Reconnects wait this long: after an outage of a minute a node is back within
// half a second.
const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 500 * time.Millisecond
)

// ErrSuperseded says that another registration took the place of this node. The
// agent then stops and never registers again by itself, or two would take turns
// for ever (CAR-10).
var ErrSuperseded = errors.New("another registration superseded this node")

// RefusedError says that the control plane will not take the registration as it
// is, such as with a bad address.
type RefusedError struct {
	Node string
	Err  error // a gRPC status
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("node %s: the control plane refuses the registration: %s", e.Node, status.Convert(e.Err).Message())
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Config configures an Agent.
type Config struct {
	Name    string     // of the node, unique in the vehicle
	Address netip.Addr // where other nodes reach it (CAR-7)
	Central bool
	Proxy   *meshv1.ProxyEndpoints
	// ControlPlane is the gRPC target of the control plane, such as host:port.
	ControlPlane string
	State        string // existing directory for the id, and for the services of others and their descriptors
	// Complete, if not nil, is closed when the list has all that the node knew from
	// the start. The digest waits for it: what it lacks is gone for the mesh.
	Complete <-chan struct{}

	// OnIdentity is told the id and epoch that the node holds: first those of an
	// earlier run, if there are any, then each that the control plane gives.
	OnIdentity func(api.Identity)
	// OnServices gets all services of the mesh whenever one changed, ordered by
	// name. While the control plane is away the last ones stay, also over a restart
	// of the node. It is called from one goroutine; the slice and what is in it are
	// shared and never change.
	OnServices func([]Service)
	Logger     *slog.Logger
}

// Service is a service instance of the mesh.
type Service struct {
	*meshv1.MeshService
	// Descriptors is the serialised FileDescriptorSet of the interface, nil if it
	// is not known. Nobody may change it.
	Descriptors []byte
}

// Agent is the agent of one node. Its methods are safe for concurrent use.
type Agent struct {
	cfg         Config
	log         *slog.Logger
	descriptors *descriptorStore
	list        list
	held        map[serviceKey]*meshv1.MeshService // of the mesh; the session's goroutine only
	holding     bool                               // held is what a control plane said
	latest      atomic.Pointer[[]Service]          // what is to be kept
	keeper      *durable.Keeper                    // of latest

	mu       sync.Mutex
	identity api.Identity
	conn     *grpc.ClientConn // nil while the control plane is away
	back     chan struct{}    // closed when conn is set
	since    time.Time        // of conn, or of its absence
	lastErr  error            // why the control plane is away
}

// New reads what an earlier run stored. It connects to nothing.
func New(cfg Config) (*Agent, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Agent{
		cfg: cfg, log: log.With("component", "agent"),
		held:  map[serviceKey]*meshv1.MeshService{},
		back:  make(chan struct{}),
		since: time.Now(), lastErr: errors.New("not yet connected"),
	}
	a.list.init(time.Now())
	id, err := loadIdentity(cfg.State, cfg.Name)
	if err != nil {
		return nil, err
	}
	a.identity = id
	a.descriptors, err = openDescriptors(cfg.State)
	if err != nil {
		return nil, err
	}
	a.keeper = durable.NewKeeper(filepath.Join(cfg.State, keptFile), a.kept,
		func(err error) { a.log.Error("services of the mesh not kept", "error", err) })
	if err := a.recall(); err != nil {
		a.log.Warn("services of the mesh that were kept are lost", "error", err)
	}
	return a, nil
}

// Identity returns the id and epoch that the node holds; the zero value if none.
func (a *Agent) Identity() api.Identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity
}

// Run keeps the node registered until ctx ends. It returns an error only if the
// control plane refuses the node for good: ErrSuperseded or a *RefusedError. That
// the control plane is away is none.
func (a *Agent) Run(ctx context.Context) error {
	if id := a.Identity(); id.ID != "" && a.cfg.OnIdentity != nil {
		a.cfg.OnIdentity(id)
	}
	a.recalled()
	var keeper sync.WaitGroup
	defer keeper.Wait()
	keeping, cancel := context.WithCancel(ctx)
	defer cancel()
	keeper.Go(func() { a.keeper.Run(keeping) })
	backoff, told := backoffMin, ""
	for {
		began := time.Now()
		err := a.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var refused *RefusedError
		if errors.As(err, &refused) {
			return err
		}
		if status.Code(err) == codes.Aborted {
			return fmt.Errorf("node %s: %w: %s", a.cfg.Name, ErrSuperseded, status.Convert(err).Message())
		}
		if time.Since(began) > backoffMax {
			backoff, told = backoffMin, ""
		}
		level := slog.LevelDebug // of what was said before
		if text := err.Error(); text != told {
			level, told = slog.LevelWarn, text
		}
		a.log.Log(ctx, level, "control plane away", "error", err)
		if !pause(ctx, backoff) {
			return nil
		}
		backoff = min(2*backoff, backoffMax)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Status is a moment of the agent.
type Status struct {
	Identity  api.Identity
	Connected bool
	Since     time.Time // of Connected
	Reason    string    // why it is not connected
	Refused   []*meshv1.Refusal
}

// Status returns the present state.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{Identity: a.identity, Connected: a.conn != nil, Since: a.since, Refused: a.list.refusals()}
	if a.conn == nil {
		s.Reason = a.lastErr.Error()
	}
	return s
}

var _ grpc.ClientConnInterface = (*Agent)(nil)

// Invoke calls the control plane with the node's identity (CAR-12). While it is
// away the call is UNAVAILABLE at once.
func (a *Agent) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	conn, err := a.central()
	if err != nil {
		return err
	}
	return conn.Invoke(ctx, method, args, reply, opts...)
}

// NewStream opens a stream to the control plane, as Invoke calls it.
func (a *Agent) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	conn, err := a.central()
	if err != nil {
		return nil, err
	}
	return conn.NewStream(ctx, desc, method, opts...)
}

// Await waits until the node is registered with a control plane that answers, or
// until ctx ends.
func (a *Agent) Await(ctx context.Context) error {
	a.mu.Lock()
	back := a.back
	a.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-back:
		return nil
	}
}

func (a *Agent) central() (*grpc.ClientConn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn == nil {
		return nil, status.Errorf(codes.Unavailable, "the control plane is away since %s: %v",
			a.since.UTC().Format(time.RFC3339Nano), a.lastErr)
	}
	return a.conn, nil
}

func (a *Agent) connected(conn *grpc.ClientConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn, a.since, a.lastErr = conn, time.Now(), nil
	close(a.back)
}

func (a *Agent) disconnected(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn != nil {
		a.since, a.back = time.Now(), make(chan struct{})
	}
	a.conn, a.lastErr = nil, err
}
