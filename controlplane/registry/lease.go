package registry

import (
	"time"

	"carisma.dev/gateway/mesh/api"
)

// Open validates an identity and returns the session that a stream belongs to.
func (r *Registry) Open(id api.Identity) (*Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.check(id)
	if err != nil {
		return nil, err
	}
	return n.session, nil
}

// Beat extends the lease of a node.
func (r *Registry) Beat(id api.Identity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.check(id)
	if err != nil {
		return err
	}
	n.deadline = time.Now().Add(r.cfg.Lease)
	return nil
}

// startLease begins the lease of a node that is alive now.
func (r *Registry) startLease(n *node, d time.Duration) {
	n.deadline = time.Now().Add(d)
	if n.lease != nil {
		n.lease.Stop()
	}
	// A beat only moves the deadline; the timer looks when it fires.
	var timer *time.Timer
	timer = time.AfterFunc(d, func() { r.leaseFired(n, &timer) })
	n.lease = timer
}

func (r *Registry) leaseFired(n *node, timer **time.Timer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || n.lease != *timer || n.Superseded || n.lost {
		return
	}
	if left := r.leaseLeft(n); left > 0 {
		n.lease.Reset(left)
		return
	}
	r.lose(n)
}

// pulseInterval is how often the registry looks whether it runs.
const pulseInterval = 100 * time.Millisecond

// beatSelf looks whether the control plane itself stood still, and when it will
// look again.
func (r *Registry) beatSelf() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.notice(time.Now())
	r.selfBeat.Reset(pulseInterval)
}

// notice notes a stall that is over now: beats of that time lie unread, or their
// senders gave up, so that every node gets a fresh lease before it is lost.
func (r *Registry) notice(now time.Time) {
	if !r.pulse.Beat(now) {
		return
	}
	r.awake = now
	r.stalls++
	r.log.Warn("the control plane stood still: leases begin anew", "stalls", r.stalls)
}

// leaseLeft is how long a node may still be silent. It looks for a stall first: the
// timer of a lease and that of the pulse come in any order when a process goes on.
func (r *Registry) leaseLeft(n *node) time.Duration {
	now := time.Now()
	r.notice(now)
	deadline := n.deadline
	if fresh := r.awake.Add(r.cfg.Lease); !r.awake.IsZero() && fresh.After(deadline) {
		deadline = fresh
	}
	return deadline.Sub(now)
}

// Stalls returns how often the control plane itself stood still.
func (r *Registry) Stalls() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stalls
}

// lose is the end of a lease. What the node's gateway bridges is gone with the
// gateway; its native services stay for as long as its proxy answers.
func (r *Registry) lose(n *node) {
	n.lost, n.since = true, time.Now()
	n.stale, n.staleAt, n.mute = true, n.since, r.cfg.Probe == nil
	n.muteAt = n.since
	r.log.Warn("node lost", "node", n.Name, "id", n.ID, "epoch", n.Epoch)
	d := r.newDirty()
	d.node(n)
	r.publish(d)
	r.startProbe(n)
}
