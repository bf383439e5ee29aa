package runtime

import (
	"net/netip"
	"slices"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// Subscriber is a subscription of a client to an eventgroup of ours.
type Subscriber = sd.Subscriber

// GroupHandler decides about the eventgroups of an offering whose events are not
// known beforehand. Its methods must not block.
type GroupHandler interface {
	// Subscribe tells that a client wants an eventgroup, with its initial events. It
	// is to be answered by [Offering.Accept] or [Offering.Refuse], then or later and
	// from anywhere. One that is accepted already wants its initial events again.
	Subscribe(s Subscriber)
	// Unsubscribe tells that it does no longer, answered or not.
	Unsubscribe(s Subscriber)
}

// GroupEvent is an event of an eventgroup that its offering does not know.
type GroupEvent struct {
	ID       uint16
	Session  uint16 // sent as it is, also 0
	Reliable bool   // goes over TCP
	Payload  []byte
}

// Accept acknowledges a subscription: events flow from now on.
func (o *Offering) Accept(s Subscriber) { o.answer(s, true) }

// Refuse refuses a subscription, or ends one that was accepted before; that client
// hears of it when it renews, which is told as a new subscription.
func (o *Offering) Refuse(s Subscriber) { o.answer(s, false) }

func (o *Offering) answer(s Subscriber, accept bool) {
	o.n.step(func(m *sd.Machine) []sd.Action {
		if !accept {
			o.subscribers = slices.DeleteFunc(o.subscribers, func(x Subscriber) bool { return x == s })
			o.arrange()
		}
		return m.AnswerSubscribe(o.n.now(), s, accept)
	})
}

// NotifyGroup sends an event of an eventgroup to its subscribers. An endpoint that
// subscribed to several eventgroups gets the events of the first of these only:
// whoever receives events from elsewhere cannot tell of which eventgroup they are,
// and an event of two must not come twice. It fails with [ErrTooLarge] before
// anything is sent. The payload may be reused once it returns.
func (o *Offering) NotifyGroup(eventgroup uint16, e GroupEvent) error {
	t := o.wiring.events[e.ID]
	switch {
	case !someip.IsEvent(e.ID):
		return ErrUnknownEvent
	case len(e.Payload) > o.n.limitOf(t, e.Reliable):
		return ErrTooLarge
	}
	m := someip.NewNotification(o.key.Service, e.ID, o.key.Major, e.Session, e.Payload)
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	t.lock()
	defer t.unlock()
	var err error
	if *buf, err = t.append((*buf)[:0], party{}, m); err != nil {
		return err
	}
	o.groups.send(eventgroup, e.Reliable, t, *buf)
	return nil
}

// groupTargets are the endpoints of open eventgroups.
type groupTargets struct {
	mu       sync.Mutex // also orders what is sent
	udp, tcp map[uint16][]way
}

func (g *groupTargets) send(eventgroup uint16, reliable bool, t *traits, b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	targets := g.udp[eventgroup]
	if reliable {
		targets = g.tcp[eventgroup]
	}
	for _, w := range targets {
		w.notify(b, t)
	}
}

// arrange finds the endpoints of each eventgroup anew. n.mu is held.
func (o *Offering) arrange() {
	udp, tcp := map[uint16][]way{}, map[uint16][]way{}
	served := map[netip.AddrPort]bool{}
	add := func(to map[uint16][]way, group uint16, reliable bool, s Subscriber) {
		e := event{o: o, cfg: EventConfig{Reliable: reliable}}
		if w, ok := o.wayTo(&e, s.Endpoints); ok {
			to[group] = append(to[group], w)
		}
	}
	for _, s := range o.subscribers {
		if at := s.Endpoints.UDP; at.IsValid() && !served[at] {
			served[at] = true
			add(udp, s.Eventgroup, false, s)
		}
	}
	clear(served)
	for _, s := range o.subscribers {
		if at := s.Endpoints.TCP; at.IsValid() && !served[at] {
			served[at] = true
			add(tcp, s.Eventgroup, true, s)
		}
	}
	o.groups.mu.Lock()
	defer o.groups.mu.Unlock()
	o.groups.udp, o.groups.tcp = udp, tcp
}

// subscribeAsked, groupJoined and groupLeft tell the handler of open eventgroups.
// n.mu is held.
func (n *Network) subscribeAsked(a sd.SubscribeAsked) {
	if o := n.offerings[a.Instance]; o != nil && o.cfg.Groups != nil {
		n.callbacks.add(func() { o.cfg.Groups.Subscribe(a.Subscriber) })
	}
}

func (o *Offering) groupJoined(a sd.SubscriberAdded, again bool) {
	if o.cfg.Groups == nil {
		return
	}
	o.arrange()
	if again && a.Initial {
		o.n.callbacks.add(func() { o.cfg.Groups.Subscribe(a.Subscriber) })
	}
}

func (o *Offering) groupLeft(a sd.SubscriberRemoved) {
	if o.cfg.Groups == nil {
		return
	}
	o.arrange()
	o.n.callbacks.add(func() { o.cfg.Groups.Unsubscribe(a.Subscriber) })
}

// Refresh makes the server send the initial events of the eventgroup again, to all
// subscriptions of it: for one that joined others and cannot know which of the
// events seen are fields.
func (s *Subscription) Refresh() {
	u := s.up
	u.mu.Lock()
	clear(u.seen)
	u.mu.Unlock()
	u.n.step(func(m *sd.Machine) []sd.Action { return m.Refresh(u.n.now(), u.key) })
}
