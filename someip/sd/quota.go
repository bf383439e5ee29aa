package sd

import (
	"net/netip"
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

// quota returns what a peer used up of the present second.
func (p *peer) quotaAt(now time.Time) *quota {
	q := &p.quota
	if now.Sub(q.began) >= time.Second {
		q.began, q.entries, q.nacks = now, 0, 0
		clear(q.answers)
		clear(q.ends)
	}
	return q
}

// mayHandle limits the work that the entries of a peer make.
func (m *Machine) mayHandle(now time.Time, p *peer) bool {
	q := p.quotaAt(now)
	if q.entries >= m.cfg.Limits.EntriesPerSecond {
		m.stats.EntryLimit++
		return false
	}
	q.entries++
	return true
}

// mayNack limits what a flood of bad Subscribes makes us send.
func (m *Machine) mayNack(now time.Time, p *peer) bool {
	q := p.quotaAt(now)
	if q.nacks >= m.cfg.Limits.NacksPerSecond {
		m.stats.NacksSuppressed++
		return false
	}
	q.nacks++
	m.stats.NacksSent++
	return true
}

// mayAnswer limits what a flood of Finds makes us send: one entry with wildcards
// asks for any number of offers.
func (m *Machine) mayAnswer(now time.Time, p *peer, key someip.InstanceKey) bool {
	q := p.quotaAt(now)
	if q.answers[key] >= m.cfg.Limits.AnswersPerSecond {
		m.stats.AnswersSuppressed++
		return false
	}
	if q.answers == nil {
		q.answers = make(map[someip.InstanceKey]int)
	}
	q.answers[key]++
	return true
}

// ended notes that a peer itself put an end to what it offered.
func (m *Machine) ended(now time.Time, p *peer, key someip.InstanceKey) {
	q := p.quotaAt(now)
	if q.ends == nil {
		q.ends = make(map[someip.InstanceKey]int)
	}
	q.ends[key]++
}

// mayReturn limits how often an instance comes and goes: the owner has more to do
// with that than the peer. One that exceeds it is back with the next offer after
// the second.
func (m *Machine) mayReturn(now time.Time, p *peer, key someip.InstanceKey) bool {
	if p.quotaAt(now).ends[key] >= m.cfg.Limits.ReturnsPerSecond {
		m.stats.ReturnsSuppressed++
		return false
	}
	return true
}

// mayRenew limits the Subscribes that a flood of offers makes us send. What comes
// too often is renewed by the first offer of the next second.
func (m *Machine) mayRenew(now time.Time, s *subscription) bool {
	if now.Sub(s.second) >= time.Second {
		s.second, s.renewals = now, 0
	}
	if s.renewals >= m.cfg.Limits.RenewalsPerSecond {
		m.stats.RenewalsSuppressed++
		return false
	}
	s.renewals++
	return true
}

// ownAddressAgain is how often it is told that a peer claims our address.
const ownAddressAgain = time.Minute

// claimed tells that a peer says it is at our own address: at instead of its own.
func (m *Machine) claimed(now time.Time, told *time.Time, from, at netip.AddrPort, key someip.InstanceKey) {
	if told.IsZero() || now.Sub(*told) >= ownAddressAgain {
		*told = now
		m.emit(OwnAddressClaimed{Peer: from, Claimed: at, Key: key})
	}
}
