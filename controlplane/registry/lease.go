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
	if left := time.Until(n.deadline); left > 0 {
		n.lease.Reset(left)
		return
	}
	r.lose(n)
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
