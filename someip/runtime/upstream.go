package runtime

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"carisma.dev/gateway/someip/sd"
)

// upstream is the one subscription of an eventgroup at its server, shared by all
// subscriptions of this network (14.2). It exists while it has consumers.
type upstream struct {
	n      *Network
	remote *remote
	key    sd.SubscriptionKey

	status    atomic.Pointer[SubscriptionStatus]
	consumers atomic.Pointer[[]*Subscription] // replaced, never changed, under n.mu

	udp, tcp bool           // what is subscribed for; guarded by n.mu
	joined   netip.AddrPort // group of a static instance; guarded by n.mu

	mu   sync.Mutex // guards seen
	seen map[uint16]struct{}
}

func (u *upstream) statusNow() SubscriptionStatus { return *u.status.Load() }

// subscribe adds a consumer, and the upstream subscription for the first.
func (n *Network) subscribe(ctx context.Context, r *remote, cfg SubscribeConfig) (*Subscription, error) {
	if !cfg.Unreliable && !cfg.Reliable {
		st := r.state.Load()
		cfg.Reliable = st.Up && !st.Endpoints.UDP.IsValid()
		cfg.Unreliable = !cfg.Reliable
	}
	s := &Subscription{cfg: cfg, filter: newFilters(cfg.Filters)}
	if cfg.Queue > 0 {
		s.queue = &queue{s: s, most: cfg.Queue}
	}
	if cfg.Events != nil {
		s.events = make(map[uint16]struct{}, len(cfg.Events))
		for _, e := range cfg.Events {
			s.events[e] = struct{}{}
		}
	}
	n.mu.Lock()
	err := n.attach(r, s)
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s.stop = context.AfterFunc(ctx, s.end)
	n.callbacks.run()
	return s, nil
}

// attach makes s a consumer of its upstream. n.mu is held.
func (n *Network) attach(r *remote, s *Subscription) error {
	if n.closed {
		return ErrClosed
	}
	key := sd.SubscriptionKey{Instance: r.key, Eventgroup: s.cfg.Eventgroup}
	u := n.upstreams[key]
	if u == nil {
		u = &upstream{n: n, remote: r, key: key, seen: make(map[uint16]struct{})}
		u.consumers.Store(new([]*Subscription))
		st := r.state.Load()
		status := &SubscriptionStatus{State: SubscriptionWaiting, Reason: st.Reason, Since: st.Since}
		if st.Up {
			status.Reason, status.Since = ReasonPending, n.now()
		}
		u.status.Store(status)
	}
	udp, tcp := u.udp || s.cfg.Unreliable, u.tcp || s.cfg.Reliable
	if udp != u.udp || tcp != u.tcp { // the first, or one that wants more
		if n.upstreams[key] == nil {
			// Known before the machine acts: events may follow the Subscribe at once.
			n.upstreams[key] = u
			n.hold(r)
			ups := append(slices.Clone(*r.upstreams.Load()), u)
			r.upstreams.Store(&ups)
			n.sources.list(r)
			r.greet()
		}
		u.udp, u.tcp = udp, tcp
		s.up = u
		u.addConsumer(s)
		if static := n.statics[r.key]; static != nil {
			n.subscribeStatic(static, u)
			return nil
		}
		if err := n.request(u); err != nil {
			n.detach(u, s)
			return err
		}
		return nil
	}
	s.up = u
	u.addConsumer(s)
	return nil
}

func (u *upstream) addConsumer(s *Subscription) {
	list := append(slices.Clone(*u.consumers.Load()), s)
	u.consumers.Store(&list)
	if s.cfg.OnState != nil {
		status := u.statusNow()
		u.n.callbacks.add(func() { s.tell(status) })
	}
}

// remove takes a consumer away, and the upstream subscription with the last.
func (u *upstream) remove(s *Subscription) {
	u.n.mu.Lock()
	u.n.detach(u, s)
	u.n.mu.Unlock()
	u.n.callbacks.run()
}

// detach is remove with n.mu held.
func (n *Network) detach(u *upstream, s *Subscription) {
	old := *u.consumers.Load()
	i := slices.Index(old, s)
	if i < 0 {
		return
	}
	list := slices.Delete(slices.Clone(old), i, i+1)
	u.consumers.Store(&list)
	if len(list) > 0 {
		return
	}
	delete(n.upstreams, u.key)
	ups := slices.DeleteFunc(slices.Clone(*u.remote.upstreams.Load()), func(o *upstream) bool { return o == u })
	u.remote.upstreams.Store(&ups)
	n.sources.list(u.remote)
	if !n.closed {
		n.leaveStatic(u)
		n.perform(n.machine.Unsubscribe(n.now(), u.key))
	}
	n.unuse(u.remote)
}

// setStatus records a change and tells the consumers. n.mu is held.
func (u *upstream) setStatus(state SubscriptionState, reason Reason) {
	if was := u.statusNow(); was.State == state && was.Reason == reason {
		return
	}
	status := SubscriptionStatus{State: state, Reason: reason, Since: u.n.now()}
	u.status.Store(&status)
	if state != SubscriptionActive {
		u.mu.Lock()
		clear(u.seen)
		u.mu.Unlock()
	}
	for _, s := range *u.consumers.Load() {
		if s.cfg.OnState != nil {
			u.n.callbacks.add(func() { s.tell(status) })
		}
	}
}

func (s *Subscription) tell(status SubscriptionStatus) {
	if !s.closed.Load() {
		s.cfg.OnState(status)
	}
}

// deliver gives a notification to the consumers that want it.
func (u *upstream) deliver(note Notification) bool {
	if u.statusNow().State == SubscriptionRefused {
		return false // what comes is of other eventgroups
	}
	delivered := false
	for _, s := range *u.consumers.Load() {
		if !s.wants(note.Event) {
			continue
		}
		if !delivered {
			delivered = true
			note.Initial = u.first(note.Event)
		}
		f := s.filter[note.Event]
		switch {
		case s.cfg.OnEvent == nil:
		case f != nil && !f.passes(note, u.n.now()):
			u.n.stats.eventsFiltered.Add(1)
		case s.queue != nil:
			s.queue.put(note)
		default:
			s.cfg.OnEvent(note)
		}
	}
	return delivered
}

// first reports whether the event is seen for the first time since the
// subscription was made.
func (u *upstream) first(event uint16) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, ok := u.seen[event]; ok {
		return false
	}
	u.seen[event] = struct{}{}
	return true
}

// subscribed reports whether events of the instance are wanted at all.
func (r *remote) subscribed() bool { return len(*r.upstreams.Load()) > 0 }

// deliver gives a notification to the subscriptions of the instance, and reports
// whether any wanted it.
func (r *remote) deliver(note Notification) bool {
	delivered := false
	for _, u := range *r.upstreams.Load() {
		delivered = u.deliver(note) || delivered
	}
	return delivered
}
