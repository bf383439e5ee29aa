package bridge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"carisma.dev/gateway/bridge/status"
)

// Config configures a [Table].
type Config struct {
	Policy Policy       // nil for DefaultPolicy
	Logger *slog.Logger // nil for none
}

// Table is the table of bridges: it runs the adapters, keeps what they import
// and exposes each instance on every other network that the rules allow.
type Table struct {
	policy Policy
	log    *slog.Logger
	ports  []*port // fixed once Run was called

	run sync.WaitGroup // exposures and upstream watches

	mu      sync.Mutex
	entries map[key]*entry
	version uint64        // of the last change
	changed chan struct{} // closed with each change
}

// port is where an adapter is attached.
type port struct {
	on      Network
	adapter Adapter
}

type key struct {
	via      Network
	iface    string
	instance string
}

type entry struct {
	state     State
	version   uint64
	svc       *shared // nil when the instance is not up
	cancel    context.CancelCauseFunc
	exposures []*exposure
}

// NewTable returns a table without adapters.
func NewTable(cfg Config) *Table {
	t := &Table{
		policy:  cfg.Policy,
		log:     cfg.Logger,
		entries: map[key]*entry{},
		changed: make(chan struct{}),
	}
	if t.policy == nil {
		t.policy = DefaultPolicy
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	return t
}

// Attach adds the adapter of a network. It must be called before Run; each
// network has one adapter.
func (t *Table) Attach(on Network, a Adapter) error {
	for _, p := range t.ports {
		if p.on == on {
			return fmt.Errorf("bridge: %s is attached twice", on)
		}
	}
	t.ports = append(t.ports, &port{on: on, adapter: a})
	return nil
}

// Run runs the adapters until ctx ends. When it returns nothing is exposed any
// more and every watch has ended.
func (t *Table) Run(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, p := range t.ports {
		g.Go(func() error { t.importFrom(gctx, p); return nil })
	}
	err := g.Wait()
	t.run.Wait()
	return err
}

// importFrom runs the import of one adapter; a failing network is tried again
// and does not concern the others.
func (t *Table) importFrom(ctx context.Context, p *port) {
	for pause := retryMin; ctx.Err() == nil; pause = min(2*pause, retryMax) {
		err := t.importOnce(ctx, p)
		if ctx.Err() != nil {
			t.lose(p, "the gateway stops")
			return
		}
		t.log.Error("import failed", "network", p.on.String(), "error", err)
		t.lose(p, fmt.Sprintf("%s failed: %v", p.on, err))
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (t *Table) importOnce(ctx context.Context, p *port) error {
	offers := make(chan Offer)
	var g errgroup.Group
	g.Go(func() error {
		defer close(offers)
		return p.adapter.Import(ctx, offers)
	})
	for o := range offers {
		t.apply(ctx, p, o)
	}
	return g.Wait()
}

// apply takes an offer of the adapter at p.
func (t *Table) apply(ctx context.Context, p *port, o Offer) {
	if o.Since.IsZero() {
		o.Since = time.Now()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := key{p.on, o.Interface.FullName(), o.Name}
	e := t.entries[k]
	if o.Service == nil {
		if e != nil && e.svc != nil {
			t.down(e, o.Reason, o.Since)
		}
		return
	}
	if e == nil {
		e = &entry{exposures: make([]*exposure, len(t.ports))}
		t.entries[k] = e
	}
	if e.svc != nil {
		t.down(e, "replaced by a new offer", o.Since)
	}
	t.up(ctx, e, p, o)
}

func (t *Table) up(ctx context.Context, e *entry, p *port, o Offer) {
	ctx, e.cancel = context.WithCancelCause(ctx)
	e.svc = newShared(o.Service, &t.run)
	e.state = State{Instance: o.Instance, Via: p.on, Up: true, Since: o.Since}
	t.log.Info("instance up", "name", o.MeshName(), "network", p.on.String())
	for i, to := range t.ports {
		denied := loopRule(o.Instance, p.on, to.on)
		if denied == "" {
			denied = t.policy(o.Instance, to.on)
		}
		x := &exposure{shown: Exposure{On: to.on, Reason: denied, Since: o.Since}, done: make(chan struct{})}
		before := e.exposures[i]
		e.exposures[i] = x
		if denied != "" {
			close(x.done)
			continue
		}
		x.shown.State = Exposed
		svc := e.svc.service()
		t.run.Go(func() {
			defer close(x.done)
			if before != nil {
				<-before.done // one exposure of an instance at a time
			}
			t.expose(ctx, to, o.Instance, svc, x)
		})
	}
	t.touch(e)
}

func (t *Table) down(e *entry, reason string, since time.Time) {
	err := status.Unavailable(reason, since)
	e.state.Up, e.state.Reason, e.state.Since = false, reason, since
	t.log.Info("instance down", "name", e.state.MeshName(), "reason", reason)
	e.svc.close(err)
	e.svc = nil
	e.cancel(err)
	for _, x := range e.exposures {
		if x.shown.State != Denied {
			x.shown.State, x.shown.Reason, x.shown.Since = Waiting, reason, since
		}
	}
	t.touch(e)
}

// lose takes down all that was imported through p.
func (t *Table) lose(p *port, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, e := range t.entries {
		if e.state.Via == p.on && e.svc != nil {
			t.down(e, reason, now)
		}
	}
}

func (t *Table) touch(e *entry) {
	t.version++
	e.version = t.version
	close(t.changed)
	t.changed = make(chan struct{})
}

// Watch calls fn with every imported instance, then with each change, in order
// and one at a time, until ctx ends. An instance that goes and comes again
// while fn is busy is told once, as it is then.
func (t *Table) Watch(ctx context.Context, fn func(State)) {
	for seen := uint64(0); ctx.Err() == nil; {
		states, version, changed := t.since(seen)
		for _, s := range states {
			fn(s)
		}
		seen = version
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// since returns what changed after a version, in the order of the changes.
func (t *Table) since(version uint64) ([]State, uint64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var news []*entry
	for _, e := range t.entries {
		if e.version > version {
			news = append(news, e)
		}
	}
	slices.SortFunc(news, func(a, b *entry) int { return cmp.Compare(a.version, b.version) })
	states := make([]State, len(news))
	for i, e := range news {
		states[i] = e.state
	}
	return states, t.version, t.changed
}

// Plan lists every imported instance with its exposures, by mesh name.
func (t *Table) Plan() []Bridge {
	t.mu.Lock()
	defer t.mu.Unlock()
	plan := make([]Bridge, 0, len(t.entries))
	for _, e := range t.entries {
		b := Bridge{State: e.state}
		for _, x := range e.exposures {
			if x.shown.On != e.state.Via {
				b.Exposures = append(b.Exposures, x.shown)
			}
		}
		plan = append(plan, b)
	}
	slices.SortFunc(plan, func(a, b Bridge) int {
		return cmp.Or(cmp.Compare(a.MeshName(), b.MeshName()), cmp.Compare(a.Via.Name, b.Via.Name))
	})
	return plan
}
