// Package registry is the node and the service registry of the mesh: who is a
// node, who still lives, and which service instances every node has.
//
// All of its state is behind one lock and every request is checked under it, so
// that a refused request changes nothing (CAR-13). What others read is an
// immutable Snapshot; they are told of changes by a Subscription, never by
// polling (CAR-17).
package registry

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
)

// Grace is how long a control plane that just started waits for the nodes it has
// not heard yet, before it lets anything seem gone (CAR-50).
const Grace = 2 * time.Second

// Config configures a Registry.
type Config struct {
	Store  *store.Store
	Logger *slog.Logger
	// Probe tells whether the proxy of a lost node still answers; nil: it does not.
	Probe Prober
	// Lease is how long a node lives without a beat; 0 means api.LeaseTimeout.
	Lease time.Duration
	// DigestTimeout is how long a node may take from its registration to its digest; 0
	// means DefaultDigestTimeout.
	DigestTimeout time.Duration
	// Changes is how many changes of one node are taken in a second; 0 means
	// DefaultChanges.
	Changes int
}

// Registry is safe for concurrent use.
type Registry struct {
	cfg  Config
	log  *slog.Logger
	snap atomic.Pointer[Snapshot]

	mu       sync.Mutex
	epoch    uint64
	nodes    map[string]*node // by id, the superseded too
	names    map[string]*node // the node that holds a name
	services map[string]map[*node]*instance
	members  map[string]map[string]bool // interface → mesh names
	defaults map[string]string          // interface → mesh name, kept over restarts
	subs     map[*Subscription]struct{}
	refused  map[Reason]uint64
	peers    map[string]*rate // registrations, by where they come from
	grace    *time.Timer
	settled  bool
	closed   bool
	wg       sync.WaitGroup // probes

	pulse    api.Pulse
	selfBeat *time.Timer
	awake    time.Time // end of the last stall
	stalls   uint64
}

// New returns a registry with the nodes that the store knows. They have until the
// end of the grace to show that they live.
func New(cfg Config) (*Registry, error) {
	if cfg.Lease == 0 {
		cfg.Lease = api.LeaseTimeout
	}
	if cfg.DigestTimeout == 0 {
		cfg.DigestTimeout = DefaultDigestTimeout
	}
	if cfg.Changes == 0 {
		cfg.Changes = DefaultChanges
	}
	records, epoch, err := cfg.Store.Nodes()
	if err != nil {
		return nil, err
	}
	defaults, err := cfg.Store.Defaults()
	if err != nil {
		return nil, err
	}
	r := &Registry{
		cfg: cfg, log: cfg.Logger, epoch: epoch, defaults: defaults,
		nodes:    map[string]*node{},
		names:    map[string]*node{},
		services: map[string]map[*node]*instance{},
		members:  map[string]map[string]bool{},
		subs:     map[*Subscription]struct{}{},
		refused:  map[Reason]uint64{},
		peers:    map[string]*rate{},
		pulse:    api.Pulse{Interval: pulseInterval},
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.snap.Store(&Snapshot{
		Nodes:      map[string]*Node{},
		Services:   map[string]*Service{},
		Interfaces: map[string]*Interface{},
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.newDirty()
	for _, rec := range records {
		n := newNode(rec)
		n.used, n.stored = true, true
		r.nodes[n.ID] = n
		if !n.Superseded {
			r.names[n.Name] = n
			r.startLease(n, max(Grace, cfg.Lease))
			d.node(n)
		}
	}
	r.grace = time.AfterFunc(Grace, r.endGrace)
	r.pulse.Beat(time.Now())
	r.selfBeat = time.AfterFunc(pulseInterval, r.beatSelf)
	r.publish(d)
	return r, nil
}

// Close ends leases and probes. Sessions end with it; the store stays open.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	r.grace.Stop()
	r.selfBeat.Stop()
	for _, n := range r.nodes {
		n.stop()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// Snapshot returns the present state.
func (r *Registry) Snapshot() *Snapshot { return r.snap.Load() }

// Refused returns how many requests were refused, by reason (CAR-13).
func (r *Registry) Refused() map[Reason]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.refused)
}

// refuse counts an error of the registry on its way out.
func (r *Registry) refuse(err *Error) error {
	r.refused[err.Reason]++
	return err
}

func (r *Registry) endGrace() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.settled {
		return
	}
	// Nodes had no chance to be heard while the control plane stood still.
	again := min(r.cfg.Lease, Grace)
	if r.notice(time.Now()); !r.awake.IsZero() && time.Since(r.awake) < again {
		r.grace.Reset(again)
		return
	}
	r.settle()
}

// settle ends the time in which nothing may seem gone.
func (r *Registry) settle() {
	if r.settled {
		return
	}
	r.settled = true
	r.grace.Stop()
	r.log.Info("registry settled")
	r.publish(r.newDirty())
}

// settleIfAll settles early once every node that was known at the start has given
// its digest. With a lost store nobody is known, and the grace runs in full.
func (r *Registry) settleIfAll() {
	for _, n := range r.names {
		if !n.synced {
			return
		}
	}
	if r.hadNodes() {
		r.settle()
	}
}

// hadNodes reports whether the store knew any node at the start.
func (r *Registry) hadNodes() bool {
	for _, n := range r.names {
		if n.stored {
			return true
		}
	}
	return false
}

// Check validates the identity of a request that changes nothing by itself.
func (r *Registry) Check(id api.Identity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.check(id)
	return err
}

// check finds the node that a request proves to come from, or says why it is not
// acceptable (CAR-13).
func (r *Registry) check(id api.Identity) (*node, error) {
	n := r.nodes[id.ID]
	switch {
	case id.ID == "":
		return nil, r.refuse(newError(NoIdentity, "the request carries no %s", api.NodeIDHeader))
	case n == nil:
		return nil, r.refuse(newError(UnknownNode, "no node has the id %q", id.ID))
	case n.Superseded:
		return nil, r.refuse(newError(Superseded, "another registration superseded this one of node %s", n.Name))
	case id.Epoch < n.Epoch:
		return nil, r.refuse(newError(StaleEpoch, "epoch %d of node %s is over, %d runs", id.Epoch, n.Name, n.Epoch))
	case id.Epoch > n.Epoch:
		// An epoch from a store that was rolled back: the node has to resume.
		return nil, r.refuse(newError(LeaseExpired, "epoch %d of node %s is not known here: resume", id.Epoch, n.Name))
	case n.lost:
		return nil, r.refuse(newError(LeaseExpired, "the lease of node %s expired %s", n.Name, stamp(n.since)))
	}
	n.used = true
	return n, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
