package someipadapter

import (
	"context"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/someip/runtime"
)

// relay forwards the events of one eventgroup while it has subscribers. These are
// acknowledged when the eventgroup's own server has acknowledged, and refused when
// it refuses.
type relay struct {
	group   uint16
	request []byte
	cancel  context.CancelFunc
	members map[runtime.Subscriber]struct{}
	since   time.Time // when its server acknowledged; zero: not yet
}

// steady is how long a relay must have been open that it is opened again when its
// stream ends. One that ends sooner ends its subscriptions: their clients renew
// them with the next offer, and none of them makes us try faster than that.
const steady = time.Second

// Subscribe implements [runtime.GroupHandler].
func (x *exposedUnknown) Subscribe(s runtime.Subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	r := x.relays[s.Eventgroup]
	if r == nil {
		ctx, cancel := context.WithCancel(x.ctx)
		r = &relay{
			group: s.Eventgroup, request: opaque.Subscription{Eventgroup: s.Eventgroup}.Append(nil),
			cancel: cancel, members: map[runtime.Subscriber]struct{}{},
		}
		x.relays[s.Eventgroup] = r
		x.work.Go(func() { x.run(ctx, r) })
	}
	r.members[s] = struct{}{}
	if !r.since.IsZero() {
		x.work.Go(func() { x.welcome(r, s) })
	}
}

// Unsubscribe implements [runtime.GroupHandler].
func (x *exposedUnknown) Unsubscribe(s runtime.Subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.relays[s.Eventgroup]
	if r == nil {
		return
	}
	if delete(r.members, s); len(r.members) == 0 {
		r.cancel()
		delete(x.relays, s.Eventgroup)
	}
}

// run forwards until the relay has no subscriber any more or cannot go on.
func (x *exposedUnknown) run(ctx context.Context, r *relay) {
	defer r.cancel()
	select {
	case <-x.started:
	case <-ctx.Done():
		return
	}
	for {
		err := x.svc.Subscribe(ctx, opaque.Watch, r.request,
			func() { x.opened(r) }, func(it bridge.Item) { x.forward(r, it) })
		if ctx.Err() != nil {
			return
		}
		x.adapter.log.Debug("relay ended", "instance", x.key, "eventgroup", r.group, "error", err)
		if !x.reopen(r) {
			return
		}
	}
}

// opened acknowledges those who wait.
func (x *exposedUnknown) opened(r *relay) {
	x.mu.Lock()
	r.since = time.Now()
	waiting := make([]runtime.Subscriber, 0, len(r.members))
	for s := range r.members {
		waiting = append(waiting, s)
	}
	x.mu.Unlock()
	for _, s := range waiting {
		x.offering.Accept(s)
	}
}

// welcome acknowledges one who joins, and has the initial events sent again: a
// second watch of the eventgroup makes its server do so, and the first one brings
// them.
func (x *exposedUnknown) welcome(r *relay, s runtime.Subscriber) {
	x.offering.Accept(s)
	ctx, cancel := context.WithTimeout(x.ctx, x.adapter.cfg.RequestTimeout)
	defer cancel()
	_ = x.svc.Subscribe(ctx, opaque.Watch, r.request, cancel, func(bridge.Item) {}) // ends by cancel, or with the relay
}

// reopen tells whether a relay whose stream ended is to be opened again. If not,
// all subscriptions of its eventgroup end.
func (x *exposedUnknown) reopen(r *relay) bool {
	x.mu.Lock()
	again := !r.since.IsZero() && time.Since(r.since) >= steady
	r.since = time.Time{}
	members := r.members
	if !again {
		r.members = nil
		if x.relays[r.group] == r {
			delete(x.relays, r.group)
		}
	}
	x.mu.Unlock()
	if again {
		return true
	}
	for s := range members {
		x.offering.Refuse(s)
	}
	return false
}

// forward sends an item to the subscribers.
func (x *exposedUnknown) forward(r *relay, it bridge.Item) {
	e, err := opaque.ParseEvent(it.Payload)
	if err == nil {
		err = x.offering.NotifyGroup(r.group, runtime.GroupEvent{
			ID: e.ID, Session: it.Session, Reliable: e.Reliable, Payload: e.Payload,
		})
	}
	if err != nil {
		x.adapter.log.Debug("event not sent", "instance", x.key, "eventgroup", r.group, "error", err)
	}
}
