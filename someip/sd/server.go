package sd

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"carisma.dev/gateway/someip"
)

// ownOffer is an instance that we offer.
type ownOffer struct {
	spec    OfferSpec
	options []Option

	ramp      *ramp     // in the initial wait or repetition phase
	announced bool      // an Offer was sent: it can be found and must be withdrawn
	notBefore time.Time // earliest cyclic offer
	offered   time.Time // last by multicast

	subscribers map[subscriberKey]*subscriber
	conflict    netip.AddrPort // peer that offers the same
}

// entry returns the Offer with the default TTL unless it has its own.
func (o *ownOffer) entry(ttl uint32) Entry {
	if o.spec.TTL != 0 {
		ttl = o.spec.TTL
	}
	return offerEntry(o.spec.Key, o.spec.Minor, ttl)
}

func (o *ownOffer) eventgroup(id uint16) *Eventgroup {
	for i := range o.spec.Eventgroups {
		if o.spec.Eventgroups[i].ID == id {
			return &o.spec.Eventgroups[i]
		}
	}
	return nil
}

// Offer announces an instance: initial wait, repetitions, then cyclic offers.
// Call it once the instance can be used (case 58). It fails with ErrOffer, or
// with ErrOffered if the instance is offered already. An offer of the same
// instance by a peer is ignored from now on (case 76).
func (m *Machine) Offer(now time.Time, spec OfferSpec) ([]Action, error) {
	if err := spec.validate(&m.cfg); err != nil {
		return nil, err
	}
	if m.offers[spec.Key] != nil {
		return nil, fmt.Errorf("%w: %v", ErrOffered, spec.Key)
	}
	options, err := spec.options()
	if err != nil {
		return nil, err
	}
	size := fixedSize + entrySize
	for i := range options {
		size += options[i].size()
	}
	if size > m.cfg.MaxPayload {
		return nil, fmt.Errorf("%w: %v: %d bytes exceed a message", ErrOffer, spec.Key, size)
	}
	spec.Eventgroups = slices.Clone(spec.Eventgroups)
	o := &ownOffer{spec: spec, options: options, subscribers: make(map[subscriberKey]*subscriber)}
	m.offers[spec.Key] = o
	m.offersByID[spec.Key.Service] = append(m.offersByID[spec.Key.Service], o)
	m.order = append(m.order, o)
	if r := m.remote[spec.Key]; r != nil {
		o.conflict = r.peer.at
		m.emit(OfferConflict{Key: spec.Key, Peer: r.peer.at, Local: true, Configuration: r.available().Configuration})
		m.dropOffer(now, r, ReasonWithdrawn)
	}
	m.startOffer(now, o)
	return m.flush(), nil
}

// StopOffer withdraws instances and forgets their subscribers (SV-7). Connections
// are left for the clients to close. Instances not offered are skipped.
func (m *Machine) StopOffer(now time.Time, keys ...someip.InstanceKey) []Action {
	for _, key := range keys {
		if o := m.offers[key]; o != nil {
			m.withdraw(now, o)
		}
	}
	return m.flush()
}

func (m *Machine) withdraw(now time.Time, o *ownOffer) {
	if o.announced {
		m.post(nil, offerEntry(o.spec.Key, o.spec.Minor, 0), o.options...)
	}
	for _, s := range sortedSubscribers(o.subscribers) {
		m.removeSubscriber(s)
		if s.known() {
			m.emitAfter(SubscriberRemoved{Subscriber: s.info(), Reason: ReasonWithdrawn})
		}
	}
	o.ramp, o.announced = nil, false
	same := func(other *ownOffer) bool { return other == o }
	delete(m.offers, o.spec.Key)
	m.order = slices.DeleteFunc(m.order, same)
	if rest := slices.DeleteFunc(m.offersByID[o.spec.Key.Service], same); len(rest) > 0 {
		m.offersByID[o.spec.Key.Service] = rest
	} else {
		delete(m.offersByID, o.spec.Key.Service)
	}
	m.findAgain(now, o.spec.Key)
}

// receiveFind answers a Find with what it matches (SV-3 to SV-6).
func (m *Machine) receiveFind(now time.Time, p *peer, multicast bool, e *Entry) {
	if m.in.Flags&FlagUnicast == 0 { // SV-5
		m.stats.IgnoredFinds++
		return
	}
	for _, o := range m.offersByID[e.Service] {
		if !o.spec.Key.Matches(e.Key()) || e.Minor != someip.AnyMinor && e.Minor > o.spec.Minor {
			continue
		}
		switch {
		case !o.announced: // initial wait
			m.stats.IgnoredFinds++
		case !m.mayAnswer(now, p, o.spec.Key):
		case !multicast:
			m.answer(now, p, o)
		default: // case 67
			if !slices.Contains(p.answers, o) {
				p.answers = append(p.answers, o)
			}
			p.asked = now
			if !p.answer.armed() {
				m.timers.set(&p.answer, now.Add(m.jitter(m.cfg.RequestResponseDelayMin, m.cfg.RequestResponseDelayMax)))
			}
		}
	}
}

// sendAnswers sends what Finds of a peer asked for and is still offered. Where
// answers go by multicast, one that all heard since needs no other.
func (m *Machine) sendAnswers(now time.Time, p *peer) {
	for _, o := range p.answers {
		if o.announced && !(m.cfg.MulticastAnswers && o.offered.After(p.asked)) {
			m.answer(now, p, o)
		}
	}
	p.answers = nil
}

// answer offers an instance to a peer that looks for it, or to all (SV-4).
func (m *Machine) answer(now time.Time, p *peer, o *ownOffer) {
	if m.cfg.MulticastAnswers && now.Sub(o.offered) >= m.cfg.CyclicOfferDelay/2 {
		m.offer(now, o)
		return
	}
	m.post(p, o.entry(m.cfg.TTL), o.options...)
}
