package api

import "time"

// StallTolerance is how much later than it asked for a process may wake up before
// the silence of others in that time proves nothing: it did not listen itself.
const StallTolerance = 150 * time.Millisecond

// Pulse notices that its owner did not run for a while: the process was stopped,
// the machine starved or slept. Its owner beats it at least every Interval. It is
// not safe for concurrent use.
type Pulse struct {
	Interval time.Duration
	last     time.Time
}

// Beat tells whether the owner was stalled since the beat before.
func (p *Pulse) Beat(now time.Time) (stalled bool) {
	stalled = !p.last.IsZero() && now.Sub(p.last) > p.Interval+StallTolerance
	p.last = now
	return stalled
}
