package runtime

import (
	"context"
	"slices"

	"carisma.dev/gateway/someip"
)

// observer is one call of Observe.
type observer struct {
	filter Filter
	notify func(Availability)
	done   bool // guarded by Network.mu
}

// Observe calls f for each instance that others offer on this network and the
// filter selects: at once for those that are there, then for every change, in
// order, until the context ends. Own offers are left out. A filter of a certain
// service also looks for it (FindService). It returns without waiting; f must
// not block.
func (n *Network) Observe(ctx context.Context, filter Filter, f func(Availability)) error {
	o := &observer{filter: filter, notify: f}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return ErrClosed
	}
	n.observers = append(n.observers, o)
	for key, a := range n.seen {
		if a.Up && matches(key, filter) {
			n.callbacks.add(func() { n.tell(o, a) })
		}
	}
	n.find(filter)
	n.mu.Unlock()
	context.AfterFunc(ctx, func() { n.unobserve(o) })
	n.callbacks.run()
	return nil
}

func (n *Network) unobserve(o *observer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o.done = true
	n.observers = slices.DeleteFunc(n.observers, func(x *observer) bool { return x == o })
	n.stopFind(o.filter)
}

func (n *Network) tell(o *observer, a Availability) {
	n.mu.Lock()
	done := o.done
	n.mu.Unlock()
	if !done {
		o.notify(a)
	}
}

// changed tells the observers of an instance. n.mu is held.
func (n *Network) changed(a Availability) {
	for _, o := range n.observers {
		if matches(a.Key, o.filter) {
			n.callbacks.add(func() { n.tell(o, a) })
		}
	}
}

// find and stopFind count how many want an instance to be looked for. n.mu is held.
func (n *Network) find(key InstanceKey) {
	if key.Service == someip.AnyService || n.statics[key] != nil {
		return // offers come without asking, or need not come
	}
	n.finds[key]++
	if n.finds[key] == 1 {
		n.perform(n.machine.Find(n.now(), key))
	}
}

func (n *Network) stopFind(key InstanceKey) {
	if n.finds[key] == 0 {
		return
	}
	if n.finds[key]--; n.finds[key] == 0 {
		delete(n.finds, key)
		n.machine.StopFind(key)
	}
}
