package registry

import "time"

// DefaultDigestTimeout is how long a node may take from its registration to its
// digest. A gateway that is slow to learn what it has is given that, one that hangs
// is not taken for a node that lives.
const DefaultDigestTimeout = 30 * time.Second

// awaitDigest ends the session of a node that just registered if it does not say
// which services it has: beats alone make no node, and its proxy gets nothing
// before (CAR-50).
func (r *Registry) awaitDigest(n *node) {
	if n.digest != nil {
		n.digest.Stop()
	}
	session := n.session
	n.digest = time.AfterFunc(r.cfg.DigestTimeout, func() { r.digestLate(n, session) })
}

func (r *Registry) digestLate(n *node, session *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || n.Superseded || n.lost || n.session != session || session.digested {
		return
	}
	r.notice(time.Now())
	if again := r.cfg.DigestTimeout; !r.awake.IsZero() && time.Since(r.awake) < again {
		n.digest.Reset(again) // it had no chance while the control plane stood still
		return
	}
	err := newError(DigestLate, "node %s has given no digest for %v", n.Name, r.cfg.DigestTimeout)
	_ = r.refuse(err) // counts it; the session says it
	session.end(err)
	n.session = newSession()
	r.log.Warn("node gives no digest", "node", n.Name, "id", n.ID, "epoch", n.Epoch)
	r.lose(n)
}
