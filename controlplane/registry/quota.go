package registry

import "time"

// What one peer and one node may have and do. A gateway registers once and sends
// its next change when the last is answered, so that it meets none of these.
const (
	maxNodesOfPeer       = 64
	maxPeers             = 4096 // whose registrations are counted
	registrationsASecond = 50   // of one peer: each is written to the disk
	digestCost           = 50   // of a digest, in changes
)

// DefaultChanges is how many changes of one node are taken in a second.
const DefaultChanges = 2000

// rate counts what happens within a second.
type rate struct {
	began time.Time
	n     int
}

// take reports whether there is room for cost more in the present second.
func (r *rate) take(now time.Time, cost, limit int) bool {
	if now.Sub(r.began) >= time.Second {
		r.began, r.n = now, 0
	}
	if r.n+cost > limit {
		return false
	}
	r.n += cost
	return true
}

// mayRegister bounds the registrations of one peer, and what is remembered to do so.
func (r *Registry) mayRegister(req Registration, now time.Time) *Error {
	if req.Peer == "" {
		return nil
	}
	of := r.peers[req.Peer]
	if of == nil {
		if len(r.peers) >= maxPeers {
			for peer, of := range r.peers {
				if now.Sub(of.began) >= time.Second {
					delete(r.peers, peer)
				}
			}
		}
		if len(r.peers) >= maxPeers {
			return newError(TooOften, "registrations from %d hosts in a second", maxPeers)
		}
		of = &rate{}
		r.peers[req.Peer] = of
	}
	if !of.take(now, 1, registrationsASecond) {
		return newError(TooOften, "more than %d registrations in a second from %s", registrationsASecond, req.Peer)
	}
	return nil
}

// nodesOf counts the nodes that registered from a peer.
func (r *Registry) nodesOf(peer string) (count int) {
	for _, n := range r.names {
		if n.peer == peer {
			count++
		}
	}
	return count
}

// mayChange bounds the changes of one node: each is work for every proxy.
func (r *Registry) mayChange(n *node, cost int) error {
	if n.changes.take(time.Now(), cost, r.cfg.Changes) {
		return nil
	}
	return r.refuse(newError(TooOften, "more than %d changes in a second from node %s", r.cfg.Changes, n.Name))
}
