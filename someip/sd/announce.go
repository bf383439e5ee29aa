package sd

import (
	"time"
)

// ramp is the initial wait and repetition phase of a group of offers and finds
// that started together: they share one random delay, and so their messages.
// Offers go on to the main phase afterwards, finds end (9.1).
type ramp struct {
	timer  timer
	sent   int
	offers []*ownOffer // those that left have another ramp or none
	wants  []*want
}

// join returns the ramp that something that starts now belongs to: the one that
// still waits, if its first message will not come too early for it.
func (m *Machine) join(now time.Time) *ramp {
	if r := m.initial; r != nil && r.timer.at.Sub(now) >= m.cfg.InitialDelayMin {
		return r
	}
	r := new(ramp)
	r.timer.fire = func(now time.Time) { m.sendRamp(now, r) }
	m.timers.set(&r.timer, now.Add(m.jitter(m.cfg.InitialDelayMin, m.cfg.InitialDelayMax))) // case 82
	m.initial = r
	return r
}

// startOffer brings an offer to its initial wait.
func (m *Machine) startOffer(now time.Time, o *ownOffer) {
	if m.down {
		return
	}
	o.announced = false
	o.ramp = m.join(now)
	o.ramp.offers = append(o.ramp.offers, o)
}

// startFind brings a find to its initial wait, unless it is there.
func (m *Machine) startFind(now time.Time, w *want) {
	if m.down || w.ramp != nil {
		return
	}
	w.ramp = m.join(now)
	w.ramp.wants = append(w.ramp.wants, w)
}

// sendRamp sends one round of a ramp by multicast. The gaps between rounds
// double (case 71).
func (m *Machine) sendRamp(now time.Time, r *ramp) {
	if m.initial == r {
		m.initial = nil
	}
	alive := false
	for _, o := range r.offers {
		if o.ramp == r {
			m.offer(now, o)
			o.announced = true
			alive = true
		}
	}
	for _, w := range r.wants {
		if w.ramp == r && !m.satisfied(w.key) { // CL-1
			m.post(nil, findEntry(w.key, m.cfg.TTL))
			alive = true
		}
	}
	if alive && r.sent < m.cfg.RepetitionsMax {
		m.timers.set(&r.timer, now.Add(m.cfg.RepetitionsBaseDelay<<r.sent))
		r.sent++
		return
	}
	m.endRamp(now, r)
}

// offer announces an instance to all.
func (m *Machine) offer(now time.Time, o *ownOffer) {
	m.post(nil, o.entry(m.cfg.TTL), o.options...)
	o.offered = now
}

// endRamp hands the offers of a ramp over to the main phase. All offers in it
// share one cycle, which a late one joins 2^max base delays after its last
// repetition at the earliest.
func (m *Machine) endRamp(now time.Time, r *ramp) {
	for _, w := range r.wants {
		if w.ramp == r {
			w.ramp = nil
		}
	}
	for _, o := range r.offers {
		if o.ramp != r {
			continue
		}
		o.ramp = nil
		o.notBefore = now.Add(min(m.cfg.RepetitionsBaseDelay<<m.cfg.RepetitionsMax, m.cfg.CyclicOfferDelay))
		if !m.cyclic.armed() {
			m.timers.set(&m.cyclic, now.Add(m.cfg.CyclicOfferDelay))
		}
	}
}

// sendCyclic sends the offers of the main phase, by multicast (SV-2).
func (m *Machine) sendCyclic(now time.Time) {
	again := false
	for _, o := range m.order {
		if o.ramp != nil || !o.announced {
			continue
		}
		again = true
		if !o.notBefore.After(now) {
			m.offer(now, o)
		}
	}
	if !again {
		return
	}
	next := m.cyclic.at.Add(m.cfg.CyclicOfferDelay)
	if !next.After(now) { // we were late by more than a cycle
		next = now.Add(m.cfg.CyclicOfferDelay)
	}
	m.timers.set(&m.cyclic, next)
}

// stopAnnouncing ends all phases.
func (m *Machine) stopAnnouncing() {
	for _, o := range m.order {
		m.stopRamp(o.ramp)
		o.ramp, o.announced = nil, false
	}
	for _, w := range m.wants {
		m.stopRamp(w.ramp)
		w.ramp = nil
	}
	m.initial = nil
	m.timers.stop(&m.cyclic)
}

func (m *Machine) stopRamp(r *ramp) {
	if r != nil {
		m.timers.stop(&r.timer)
	}
}
