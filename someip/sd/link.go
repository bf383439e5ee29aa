package sd

import (
	"slices"
	"time"
)

// LinkDown tells that the network interface went down or lost its address. What
// peers offer is unavailable; their subscriptions live on until they expire
// (SUB-12).
func (m *Machine) LinkDown(now time.Time) []Action {
	if m.down {
		return nil
	}
	m.down = true
	m.stopAnnouncing()
	m.timers.stop(&m.silence.timer)
	for _, o := range sortedOffers(m.remote) {
		m.dropOffer(now, o, ReasonLinkDown)
	}
	for _, p := range m.peers {
		p.answers = nil
		m.timers.stop(&p.answer)
	}
	return m.flush()
}

// LinkUp tells that the network interface is back. Everything is announced and
// looked for as at the start, with session counters kept (9.6).
func (m *Machine) LinkUp(now time.Time) []Action {
	if !m.down {
		return nil
	}
	m.down = false
	for _, o := range m.order {
		m.startOffer(now, o)
	}
	for _, w := range sortedWants(m.wants) {
		if !m.satisfied(w.key) {
			m.startFind(now, w)
		}
	}
	return m.flush()
}

// Shutdown withdraws all offers and ends all subscriptions and finds. What peers
// offer is still followed.
func (m *Machine) Shutdown(now time.Time) []Action {
	for key := range m.wants {
		m.StopFind(key)
	}
	for _, o := range slices.Clone(m.order) {
		m.withdraw(now, o)
	}
	for _, s := range sortedSubscriptions(m.subscriptions) {
		m.unsubscribe(s)
	}
	return m.flush()
}

// silence watches whether peers are heard by multicast at all. A switch that
// forgot our membership is the usual reason when they are not (case 70).
type silence struct {
	timer timer
	cycle time.Duration // within which offers are expected
	heard time.Time
	alarm bool // the group was joined again since
}

// longestCycle bounds what silence adapts to.
const longestCycle = 30 * time.Second

// heard notes a multicast message. If it comes after an alarm, that was perhaps
// false because peers have a longer cycle than we: the next is raised later.
func (m *Machine) heard(now time.Time) {
	s := &m.silence
	if s.alarm {
		s.alarm = false
		s.cycle = min(max(s.cycle, now.Sub(s.heard)), longestCycle)
	}
	s.heard = now
	m.timers.set(&s.timer, now.Add(s.cycle+s.cycle/10))
}

func (m *Machine) heardNothing(now time.Time) {
	if len(m.remote) == 0 { // nobody is there who should be heard
		return
	}
	m.silence.alarm = true
	m.emit(RejoinDiscovery{})
	m.timers.set(&m.silence.timer, now.Add(m.silence.cycle+m.silence.cycle/10))
}
