package sd

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// subState is how far a subscription of ours has come.
type subState uint8

const (
	subIdle       subState = iota // no offer, refused, or lost: the next offer is a new try
	subMismatch                   // as idle; the offer lacks what we want
	subConnecting                 // waits for a TCP connection
	subScheduled                  // Subscribe goes out after a random delay
	subSent                       // Subscribe went out, no Ack so far
	subAcked                      // the last Subscribe was acknowledged
)

// subscription is an eventgroup that we want.
type subscription struct {
	spec  Subscription
	state subState

	active   bool // acknowledged, and not expired since: events come
	resync   bool // the server may hold an older state: StopSubscribe goes first
	refused  bool // the server did not like the connection (SUB-11)
	doubted  bool // the server refused it once over this connection
	again    bool // is refreshed when it is acknowledged
	at       Endpoints
	sent     time.Time      // when the last Subscribe went out
	second   time.Time      // start of the second in which renewals are counted
	renewals int            // that offers triggered
	group    netip.AddrPort // multicast group of its events, joined
	lifetime timer          // of what was acknowledged
	due      timer          // of a scheduled Subscribe
}

// Subscribe wants the events of an eventgroup, at once if the instance is
// offered (case 85), and again whenever it comes back (case 56). It does not
// make the Machine look for the instance: see Find. A second Subscribe of the
// same key replaces the first. It fails with ErrSub.
func (m *Machine) Subscribe(now time.Time, spec Subscription) ([]Action, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if old := m.subscriptions[spec.Key]; old != nil {
		if old.spec == spec {
			return nil, nil
		}
		m.unsubscribe(old)
	}
	s := &subscription{spec: spec}
	s.lifetime.fire = func(time.Time) { m.endSubscription(s, ReasonExpired, true) } // case 62
	s.due.fire = func(now time.Time) { m.subscribe(now, s) }
	s.resync = m.untold(now, spec.Key)
	m.subscriptions[spec.Key] = s
	m.bySubscribed[spec.Key.Instance] = append(m.bySubscribed[spec.Key.Instance], s)
	if m.remote[spec.Key.Instance] != nil {
		m.subscribe(now, s)
	}
	return m.flush(), nil
}

// Unsubscribe ends subscriptions (SUB-13). Those not known are skipped. It is
// for the caller to close a TCP connection that nothing else uses.
func (m *Machine) Unsubscribe(_ time.Time, keys ...SubscriptionKey) []Action {
	for _, key := range keys {
		if s := m.subscriptions[key]; s != nil {
			m.unsubscribe(s)
		}
	}
	return m.flush()
}

func (m *Machine) unsubscribe(s *subscription) {
	key := s.spec.Key
	if o := m.remote[key.Instance]; o != nil && (s.state == subSent || s.state == subAcked || s.resync) {
		m.post(o.peer, subscribeEntry(key.Instance, key.Eventgroup, 0), s.options()...)
	}
	if m.remote[key.Instance] == nil && s.resync {
		m.lapsed[key] = lapse{sent: s.sent, ttl: m.ttlOf(s)}
	}
	s.active = false // not lost: given up
	m.endSubscription(s, ReasonWithdrawn, false)
	delete(m.subscriptions, key)
	same := func(other *subscription) bool { return other == s }
	if rest := slices.DeleteFunc(m.bySubscribed[key.Instance], same); len(rest) > 0 {
		m.bySubscribed[key.Instance] = rest
	} else {
		delete(m.bySubscribed, key.Instance)
	}
}

// lapse is a subscription that was given up while its server could not be told, so
// that the server keeps it until its TTL is over. To it, a Subscribe in that time
// is a renewal, which brings no initial events.
type lapse struct {
	sent time.Time
	ttl  uint32
}

func (l lapse) over(now time.Time) bool {
	return l.ttl != TTLForever && now.Sub(l.sent) > time.Duration(l.ttl)*time.Second+ttlSlack
}

// untold tells whether the server may still have a subscription that was given up.
func (m *Machine) untold(now time.Time, key SubscriptionKey) bool {
	maps.DeleteFunc(m.lapsed, func(_ SubscriptionKey, l lapse) bool { return l.over(now) })
	_, untold := m.lapsed[key]
	delete(m.lapsed, key)
	return untold
}

// ttlOf is the TTL of a subscription's Subscribes.
func (m *Machine) ttlOf(s *subscription) uint32 {
	if s.spec.TTL != 0 {
		return s.spec.TTL
	}
	return m.cfg.SubscribeTTL
}

// Refresh makes the server of a subscription send its initial events again, for a
// consumer that joined it (SUB-6). Of a Subscribe that goes out later they come
// anyway.
func (m *Machine) Refresh(now time.Time, key SubscriptionKey) []Action {
	s := m.subscriptions[key]
	if s == nil {
		return nil
	}
	switch s.state {
	case subAcked, subSent:
		m.refresh(now, s)
	case subScheduled:
		s.resync = true
	case subIdle, subMismatch, subConnecting:
	}
	return m.flush()
}

// refresh subscribes anew, once the first Subscribe is acknowledged: its initial
// events may have come before.
func (m *Machine) refresh(now time.Time, s *subscription) {
	if s.again = !s.active; !s.again {
		s.resync = true
		m.subscribe(now, s)
	}
}

// offered renews a subscription, or tries again, when its instance was offered.
// What is on its way or acknowledged is renewed by multicast offers only: they
// are the clock of all clients (SUB-2, SUB-6).
func (m *Machine) offered(now time.Time, s *subscription, o *remoteOffer, multicast bool) {
	switch s.state {
	case subConnecting:
		// Ask again if nobody is at it: the last attempt failed.
		m.connect(s, o.info.Endpoints.TCP)
		return
	case subScheduled:
		return
	case subSent, subAcked:
		if !multicast || s.state == subSent && now.Sub(s.sent) < m.cfg.AckGrace {
			return
		}
	case subIdle, subMismatch:
	}
	if !m.mayRenew(now, s) {
		return
	}
	if !multicast || m.cfg.SubscribeDelayMax == 0 {
		m.subscribe(now, s)
		return
	}
	if !m.delayed { // one delay for all that one message triggers (CL-6)
		m.delayed, m.delay = true, m.jitter(m.cfg.SubscribeDelayMin, m.cfg.SubscribeDelayMax)
	}
	if s.state == subSent {
		s.resync = true
	}
	s.state = subScheduled
	m.timers.set(&s.due, now.Add(m.delay))
}

// subscribe sends a Subscribe, once there is a connection if it takes one.
func (m *Machine) subscribe(now time.Time, s *subscription) {
	key := s.spec.Key
	o := m.remote[key.Instance]
	if o == nil {
		s.state = subIdle
		return
	}
	// Subscribe with the endpoints that the offer supports (case 91).
	var at Endpoints
	if s.spec.UDP.IsValid() && o.info.Endpoints.UDP.IsValid() {
		at.UDP = s.spec.UDP
	}
	if s.spec.TCP && o.info.Endpoints.TCP.IsValid() {
		conn := m.conns[o.info.Endpoints.TCP]
		if conn == nil || !conn.local.IsValid() || s.refused {
			m.connect(s, o.info.Endpoints.TCP)
			return
		}
		at.TCP = conn.local
	}
	if at == (Endpoints{}) {
		if s.state != subMismatch {
			s.state = subMismatch
			m.emit(SubscriptionMismatch{Key: key, Offered: o.info.Endpoints})
		}
		return
	}
	e := subscribeEntry(key.Instance, key.Eventgroup, m.ttlOf(s))
	missing := s.state == subSent || s.resync || s.at != at && s.at != Endpoints{}
	explicit := o.peer.initialData && m.cfg.InitialDataControl
	e.InitialData = explicit && (missing || !s.active)
	s.state, s.resync, s.at, s.sent = subSent, false, at, now
	if missing && !explicit { // SUB-6: fresh state and initial events
		stop := e
		stop.TTL = 0
		m.postPair(o.peer, stop, e, s.options()...)
		return
	}
	m.post(o.peer, e, s.options()...)
}

// options returns our endpoints as sent with the last Subscribe.
func (s *subscription) options() []Option {
	opts := make([]Option, 0, 2)
	if s.at.UDP.IsValid() {
		opts = append(opts, EndpointOption(s.at.UDP, UDP))
	}
	if s.at.TCP.IsValid() {
		opts = append(opts, EndpointOption(s.at.TCP, TCP))
	}
	return opts
}

// receiveAck takes an Ack or Nack (case 98).
func (m *Machine) receiveAck(now time.Time, p *peer, e *Entry) {
	s := m.subscriptions[SubscriptionKey{Instance: e.Key(), Eventgroup: e.Eventgroup}]
	if s == nil || e.Counter != 0 || s.state != subSent && s.state != subAcked && s.state != subScheduled {
		m.stats.UnknownAcks++
		return
	}
	if o := m.remote[e.Key()]; o == nil || o.peer != p {
		m.stats.UnknownAcks++
		return
	}
	if e.TTL == 0 {
		s.active = false // refused, rather than lost
		// SUB-11. A first time the Subscribe may have overtaken the connection at the
		// server: the next offer tries the same one, which a new one would not outrun
		// either. A second time the server does not know it.
		overTCP, again := s.at.TCP.IsValid(), s.doubted
		m.endSubscription(s, ReasonStopped, false)
		s.refused, s.doubted = overTCP && again, overTCP && !again
		m.emit(SubscriptionNacked{Key: s.spec.Key})
		return
	}
	if s.state == subSent {
		s.state = subAcked
	}
	s.resync, s.doubted = false, false
	m.setTTL(&s.lifetime, now, e.TTL, 1)
	group := m.ackGroup(e)
	if moved := group != s.group; moved || !s.active {
		m.joinGroup(s, group)
		s.active = true
		m.emit(SubscriptionAcked{Key: s.spec.Key, Multicast: group})
	}
	if s.again {
		m.refresh(now, s)
	}
}

// ackGroup returns the multicast endpoint that an Ack refers to.
func (m *Machine) ackGroup(e *Entry) netip.AddrPort {
	first, second, ok := m.in.Runs(e)
	if !ok {
		m.stats.BadEntries++
		return netip.AddrPort{}
	}
	for _, run := range [2][]Option{first, second} {
		for i := range run {
			at := normal(run[i].Endpoint)
			if run[i].IsMulticast() && run[i].Proto == UDP && at.Addr().IsMulticast() && at.Port() != 0 &&
				at.Addr().Is4() == m.own.Addr().Is4() {
				return at
			}
		}
	}
	return netip.AddrPort{}
}

// joinGroup changes the multicast group of a subscription. Groups are joined
// once for all that use them (SUB-14).
func (m *Machine) joinGroup(s *subscription, group netip.AddrPort) {
	old := s.group
	if old == group {
		return
	}
	s.group = group
	if group.IsValid() {
		if m.groups[group]++; m.groups[group] == 1 {
			m.emit(JoinMulticast{Group: group})
		}
	}
	if old.IsValid() {
		if m.groups[old]--; m.groups[old] == 0 {
			delete(m.groups, old)
			m.emit(LeaveMulticast{Group: old})
		}
	}
}

// endSubscription makes a subscription idle. If the server may not know that,
// the next Subscribe starts with a StopSubscribe.
func (m *Machine) endSubscription(s *subscription, why Reason, resync bool) {
	m.timers.stop(&s.lifetime)
	m.timers.stop(&s.due)
	s.resync = resync && (s.resync || s.state == subSent || s.state == subAcked || s.state == subScheduled)
	s.state, s.refused, s.again = subIdle, false, false
	if !s.resync {
		s.at = Endpoints{}
	}
	m.joinGroup(s, netip.AddrPort{})
	if s.active {
		s.active = false
		m.emit(SubscriptionLost{Key: s.spec.Key, Reason: why})
	}
}

// sortedSubscriptions makes the order of what is sent the same in each run.
func sortedSubscriptions(set map[SubscriptionKey]*subscription) []*subscription {
	return slices.SortedFunc(maps.Values(set), func(a, b *subscription) int {
		return cmp.Or(compareKeys(a.spec.Key.Instance, b.spec.Key.Instance),
			cmp.Compare(a.spec.Key.Eventgroup, b.spec.Key.Eventgroup))
	})
}
