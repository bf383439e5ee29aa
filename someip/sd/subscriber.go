package sd

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// subscriberKey identifies a subscriber of one of our instances (SUB-8).
type subscriberKey struct {
	peer       netip.AddrPort
	eventgroup uint16
	counter    uint8
}

// subscriber is a subscription of a peer.
type subscriber struct {
	offer *ownOffer
	peer  *peer
	key   subscriberKey
	at    Endpoints
	timer timer // its lifetime; while pending: how long it waits

	pending bool  // waits for its TCP connection, or for the owner's answer
	asked   bool  // the owner was asked
	entry   Entry // the Subscribe to answer then
	initial bool  // and what it says about initial events
}

func (s *subscriber) info() Subscriber {
	return Subscriber{
		Instance: s.offer.spec.Key, Eventgroup: s.key.eventgroup,
		Peer: s.peer.at, Counter: s.key.counter, Endpoints: s.at,
	}
}

// receiveSubscribe handles Subscribe and StopSubscribe in the order of the
// entries in the message (SUB-5).
func (m *Machine) receiveSubscribe(now time.Time, p *peer, e *Entry) {
	o := m.offers[e.Key()]
	key := subscriberKey{p.at, e.Eventgroup, e.Counter}
	var old *subscriber
	if o != nil {
		old = o.subscribers[key]
	}
	if e.TTL == 0 {
		if old == nil { // SUB-10
			m.stats.UnknownStops++
			return
		}
		m.endSubscriber(old, ReasonStopped)
		return
	}
	at, ok := m.checkSubscribe(now, p, o, e)
	if !ok || old == nil && !m.roomForSubscriber(o, p, e.Eventgroup) {
		// A refusal leaves no state (case 92).
		if old != nil {
			m.endSubscriber(old, ReasonStopped)
		}
		m.nack(now, p, e)
		return
	}
	explicit := p.initialData && m.cfg.InitialDataControl // SUB-7
	switch {
	case old != nil && old.pending && old.at == at:
		old.entry, old.initial = *e, !explicit || e.InitialData
		if old.asked {
			m.setTTL(&old.timer, now, e.TTL, m.cfg.subscriptionFactor(e.Key()))
		}
		return
	case old != nil && old.at == at:
		m.setTTL(&old.timer, now, e.TTL, m.cfg.subscriptionFactor(e.Key()))
		m.ack(p, o, e)
		if explicit && e.InitialData {
			m.emitAfter(SubscriberAdded{Subscriber: old.info(), Initial: true})
		}
		return
	case old != nil:
		m.endSubscriber(old, ReasonMoved)
	}
	s := &subscriber{offer: o, peer: p, key: key, at: at, entry: *e, initial: !explicit || e.InitialData}
	s.timer.fire = func(now time.Time) { m.subscriberDue(now, s) }
	o.subscribers[key] = s
	p.subscribers[s] = struct{}{}
	m.subscribers++
	if at.TCP.IsValid() && !m.isAccepted(o, at.TCP) { // SUB-3
		if m.cfg.ConnectGrace == 0 {
			m.removeSubscriber(s)
			m.nack(now, p, e)
			return
		}
		s.pending = true
		m.pending = append(m.pending, s)
		m.timers.set(&s.timer, now.Add(m.cfg.ConnectGrace))
		return
	}
	m.admitSubscriber(now, s)
}

// admitSubscriber confirms a subscriber that can be served, or asks the owner
// about it where that is to decide.
func (m *Machine) admitSubscriber(now time.Time, s *subscriber) {
	if !s.offer.spec.AnyEventgroup {
		m.confirmSubscriber(now, s)
		return
	}
	s.pending, s.asked = true, true
	m.setTTL(&s.timer, now, s.entry.TTL, m.cfg.subscriptionFactor(s.offer.spec.Key))
	m.emitAfter(SubscribeAsked{Subscriber: s.info()})
}

// AnswerSubscribe answers SubscribeAsked: with an Ack or a Nack. A subscriber that
// was acknowledged is forgotten when it is refused later; it hears of that with
// its next Subscribe, which is told as a new one. The owner hears of neither by a
// SubscriberRemoved. A subscriber that is no more is skipped.
func (m *Machine) AnswerSubscribe(now time.Time, who Subscriber, accept bool) []Action {
	o := m.offers[who.Instance]
	if o == nil || !o.spec.AnyEventgroup {
		return nil
	}
	s := o.subscribers[subscriberKey{who.Peer, who.Eventgroup, who.Counter}]
	switch {
	case s == nil || s.at != who.Endpoints || s.pending && !s.asked:
		return nil
	case !accept:
		waits := s.pending
		m.removeSubscriber(s)
		if waits {
			m.nack(now, s.peer, &s.entry)
		}
	case s.pending:
		m.confirmSubscriber(now, s)
	}
	return m.flush()
}

// confirmSubscriber answers with an Ack and lets events flow, in this order.
func (m *Machine) confirmSubscriber(now time.Time, s *subscriber) {
	s.pending = false
	m.setTTL(&s.timer, now, s.entry.TTL, m.cfg.subscriptionFactor(s.offer.spec.Key)) // case 97
	m.ack(s.peer, s.offer, &s.entry)
	m.emitAfter(SubscriberAdded{Subscriber: s.info(), Initial: s.initial})
}

// subscriberDue ends a lifetime (SUB-12), or the wait for a TCP connection.
func (m *Machine) subscriberDue(now time.Time, s *subscriber) {
	if s.pending {
		m.endSubscriber(s, ReasonExpired)
		m.nack(now, s.peer, &s.entry)
		return
	}
	m.endSubscriber(s, ReasonExpired)
}

func (m *Machine) endSubscriber(s *subscriber, why Reason) {
	m.removeSubscriber(s)
	if s.known() {
		m.emitAfter(SubscriberRemoved{Subscriber: s.info(), Reason: why})
	}
}

// known reports whether the owner has heard of the subscriber.
func (s *subscriber) known() bool { return !s.pending || s.asked }

func (m *Machine) removeSubscriber(s *subscriber) {
	m.timers.stop(&s.timer)
	delete(s.offer.subscribers, s.key)
	delete(s.peer.subscribers, s)
	m.subscribers--
	if s.pending {
		m.pending = slices.DeleteFunc(m.pending, func(o *subscriber) bool { return o == s })
	}
}

// ack answers with an Ack. The multicast option is there whenever events may
// come that way, and names the group of the eventgroup (2.2, case 49).
func (m *Machine) ack(p *peer, o *ownOffer, e *Entry) {
	if g := o.eventgroup(e.Eventgroup); g != nil && g.Multicast.IsValid() {
		m.post(p, ackEntry(e), MulticastOption(g.Multicast))
		return
	}
	m.post(p, ackEntry(e))
}

func (m *Machine) nack(now time.Time, p *peer, e *Entry) {
	if m.mayNack(now, p) {
		m.stats.NacksSent++
		m.post(p, nackEntry(e))
	}
}

func (m *Machine) roomForSubscriber(o *ownOffer, p *peer, eventgroup uint16) bool {
	l := &m.cfg.Limits
	if m.subscribers >= l.Subscribers || len(p.subscribers) >= l.SubscribersPerPeer {
		return false
	}
	n := 0
	for counter := range uint8(counterMask + 1) {
		if o.subscribers[subscriberKey{p.at, eventgroup, counter}] != nil {
			n++
		}
	}
	return n < l.SubscribersPerGroup
}

// sortedSubscribers makes the order of what is reported the same in each run.
func sortedSubscribers[M map[subscriberKey]*subscriber | map[*subscriber]struct{}](set M) []*subscriber {
	var all iter.Seq[*subscriber]
	switch set := any(set).(type) {
	case map[subscriberKey]*subscriber:
		all = maps.Values(set)
	case map[*subscriber]struct{}:
		all = maps.Keys(set)
	}
	return slices.SortedFunc(all, func(a, b *subscriber) int {
		return cmp.Or(compareKeys(a.offer.spec.Key, b.offer.spec.Key), a.key.peer.Compare(b.key.peer),
			cmp.Compare(a.key.eventgroup, b.key.eventgroup), cmp.Compare(a.key.counter, b.key.counter))
	})
}

// acceptedKey is a TCP connection of a peer to a port of ours. The local address
// is not part of it: an instance offered at one is reached by that one only.
type acceptedKey struct {
	port   uint16
	remote netip.AddrPort
}

func (m *Machine) isAccepted(o *ownOffer, remote netip.AddrPort) bool {
	_, ok := m.accepted[acceptedKey{o.spec.Endpoints.TCP.Port(), remote}]
	return ok
}

// Accepted tells that a peer opened a TCP connection to an endpoint of ours.
func (m *Machine) Accepted(now time.Time, local, remote netip.AddrPort) []Action {
	key := acceptedKey{local.Port(), normal(remote)}
	if len(m.accepted) >= m.cfg.Limits.AcceptedTCPConnections {
		m.stats.ConnectionLimit++
		return nil
	}
	m.accepted[key] = struct{}{}
	for i := 0; i < len(m.pending); {
		s := m.pending[i]
		if !m.isAccepted(s.offer, s.at.TCP) {
			i++
			continue
		}
		m.pending = slices.Delete(m.pending, i, i+1)
		m.admitSubscriber(now, s)
	}
	return m.flush()
}

// Closed tells that a TCP connection of a peer to an endpoint of ours closed.
func (m *Machine) Closed(_ time.Time, local, remote netip.AddrPort) []Action {
	key := acceptedKey{local.Port(), normal(remote)}
	if _, ok := m.accepted[key]; !ok {
		return nil
	}
	delete(m.accepted, key)
	for _, o := range m.order {
		if o.spec.Endpoints.TCP.Port() != key.port {
			continue
		}
		for _, s := range sortedSubscribers(o.subscribers) {
			if s.at.TCP == key.remote && s.known() {
				m.endSubscriber(s, ReasonDisconnected)
			}
		}
	}
	return m.flush()
}
