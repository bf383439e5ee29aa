package sd

import (
	"net/netip"
	"slices"
	"time"

	"carisma.dev/gateway/someip"
)

// peer is what is known of another host, or of another stack on it.
type peer struct {
	at          netip.AddrPort // SD endpoint: where replies go, and its identity (RB-3)
	in          [2]path        // unicast, multicast
	out         counter        // of unicast messages to it
	addressed   bool           // there was one
	initialData bool           // it announced explicit initial data control
	heard       time.Time

	offers      map[someip.InstanceKey]*remoteOffer
	subscribers map[*subscriber]struct{}

	answers []*ownOffer // that a Find asked for
	answer  timer       // when they go
	asked   time.Time   // last

	quota   quota
	claimed time.Time // when it was told that it claims our address
}

// path returns the receive state of the multicast or the unicast path.
func (p *peer) path(multicast bool) (this, other *path) {
	if multicast {
		return &p.in[1], &p.in[0]
	}
	return &p.in[0], &p.in[1]
}

// idle reports whether nothing but sessions would be lost with p.
func (p *peer) idle() bool {
	return len(p.offers) == 0 && len(p.subscribers) == 0 && len(p.answers) == 0
}

// peer returns the state of a peer, making it if there is room, else nil.
func (m *Machine) peer(now time.Time, at netip.AddrPort) *peer {
	if p := m.peers[at]; p != nil {
		p.heard = now
		return p
	}
	if len(m.peers) >= m.cfg.Limits.Peers && !m.evictPeer() {
		return nil
	}
	p := &peer{
		at: at, heard: now,
		out:         m.floor,
		offers:      make(map[someip.InstanceKey]*remoteOffer),
		subscribers: make(map[*subscriber]struct{}),
		quota:       quota{answers: make(map[someip.InstanceKey]int), ends: make(map[someip.InstanceKey]int)},
	}
	p.answer.fire = func(now time.Time) { m.sendAnswers(now, p) }
	m.peers[at] = p
	return p
}

// evictPeer forgets the idle peer that matters least: one that we never wrote
// to, then the one not heard for longest.
func (m *Machine) evictPeer() bool {
	var victim *peer
	for _, p := range m.peers {
		if !p.idle() {
			continue
		}
		switch {
		case victim == nil:
			victim = p
		case p.addressed != victim.addressed:
			if !p.addressed {
				victim = p
			}
		case p.heard.Before(victim.heard):
			victim = p
		}
	}
	if victim == nil {
		return false
	}
	// Should it come back, our sessions must not start below where it saw us, or
	// it would take that for our restart.
	m.floor.session = max(m.floor.session, victim.out.session)
	m.floor.wrapped = m.floor.wrapped || victim.out.wrapped
	delete(m.peers, victim.at)
	return true
}

// rebooted drops everything that a restarted peer had set up (RB-6). Where a unicast
// message shows it, the peer may have had our Subscribes already since it restarted:
// the offer that would have shown it was lost, or equal to the last one before (RB-7).
// Its initial events were for a state of ours that goes now, so they are asked for again.
func (m *Machine) rebooted(now time.Time, p *peer, multicast bool) {
	m.stats.Reboots++
	m.emit(PeerRebooted{Peer: p.at})
	for _, o := range sortedOffers(p.offers) {
		m.drop(now, o, ReasonRebooted, !multicast)
	}
	for _, s := range sortedSubscribers(p.subscribers) {
		m.removeSubscriber(s)
		if s.known() {
			m.emit(SubscriberRemoved{Subscriber: s.info(), Reason: ReasonRebooted})
		}
	}
	p.answers = nil
	m.timers.stop(&p.answer)
}

// release takes an offer from the peer.
func (p *peer) release(o *remoteOffer) { delete(p.offers, o.info.Key) }

// sortedOffers makes the order of what is reported the same in each run.
func sortedOffers(offers map[someip.InstanceKey]*remoteOffer) []*remoteOffer {
	list := make([]*remoteOffer, 0, len(offers))
	for _, o := range offers {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *remoteOffer) int { return compareKeys(a.info.Key, b.info.Key) })
	return list
}
