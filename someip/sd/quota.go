package sd

import (
	"time"

	"carisma.dev/gateway/someip"
)

// quota counts what one peer makes us do within a second, so that a flood of its
// entries costs neither the owner nor other peers anything. What exceeds a limit
// is counted and ignored; what holds is kept until it expires.
type quota struct {
	began   time.Time // of the second
	entries int
	nacks   int
	answers map[someip.InstanceKey]int // to its Finds, by instance
	ends    map[someip.InstanceKey]int // of instances that it offered, by itself
}

// quotaAt returns what a peer used up of the present second.
func (p *peer) quotaAt(now time.Time) *quota {
	q := &p.quota
	if now.Sub(q.began) >= time.Second {
		q.began, q.entries, q.nacks = now, 0, 0
		clear(q.answers)
		clear(q.ends)
	}
	return q
}

// within reports whether the nth of something in a second keeps to its limit, and
// counts it if not.
func within(limit, nth int, exceeded *uint64) bool {
	if nth > limit {
		*exceeded++
	}
	return nth <= limit
}

// mayHandle limits the work that the entries of a peer make.
func (m *Machine) mayHandle(now time.Time, p *peer) bool {
	q := p.quotaAt(now)
	q.entries++
	return within(m.cfg.Limits.EntriesPerSecond, q.entries, &m.stats.EntryLimit)
}

// mayNack limits what a flood of bad Subscribes makes us send.
func (m *Machine) mayNack(now time.Time, p *peer) bool {
	q := p.quotaAt(now)
	q.nacks++
	return within(m.cfg.Limits.NacksPerSecond, q.nacks, &m.stats.NacksSuppressed)
}

// mayAnswer limits what a flood of Finds makes us send: one entry with wildcards
// asks for any number of offers.
func (m *Machine) mayAnswer(now time.Time, p *peer, key someip.InstanceKey) bool {
	q := p.quotaAt(now)
	q.answers[key]++
	return within(m.cfg.Limits.AnswersPerSecond, q.answers[key], &m.stats.AnswersSuppressed)
}

// ended notes that a peer itself put an end to what it offered.
func (m *Machine) ended(now time.Time, p *peer, key someip.InstanceKey) {
	p.quotaAt(now).ends[key]++
}

// mayReturn limits how often an instance comes and goes: the owner has more to do
// with that than the peer. One that exceeds it is back with the next offer after
// the second.
func (m *Machine) mayReturn(now time.Time, p *peer, key someip.InstanceKey) bool {
	return within(m.cfg.Limits.ReturnsPerSecond, p.quotaAt(now).ends[key]+1, &m.stats.ReturnsSuppressed)
}

// mayRenew limits the Subscribes that a flood of offers makes us send. What comes
// too often is renewed by the first offer of the next second.
func (m *Machine) mayRenew(now time.Time, s *subscription) bool {
	if now.Sub(s.second) >= time.Second {
		s.second, s.renewals = now, 0
	}
	s.renewals++
	return within(m.cfg.Limits.RenewalsPerSecond, s.renewals, &m.stats.RenewalsSuppressed)
}
