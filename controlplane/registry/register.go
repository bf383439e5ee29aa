package registry

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"time"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
)

// maxNodes bounds the names that nodes may hold, maxEpoch the epochs that they
// may bring along.
const (
	maxNodes = 1024
	maxEpoch = 1 << 53
)

// Registration asks for a place in the mesh, or for an earlier one again.
type Registration struct {
	Node   store.Node   // name, address, proxy, machine and boot
	Resume api.Identity // the zero value for none
	// Peer is the host that asks, "" if it is not known: its share is bounded.
	Peer string
}

// Register makes a node known (CAR-6, 8) or lets it resume. It returns the
// identity that the node holds from now on and whether it is an earlier one.
func (r *Registry) Register(req Registration) (id api.Identity, resumed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.mayRegister(req, time.Now()); err != nil {
		return api.Identity{}, false, r.refuse(err)
	}
	if err := validateNode(req.Node); err != nil {
		return api.Identity{}, false, r.refuse(err)
	}
	if req.Resume.ID != "" {
		id, err = r.resume(req)
		return id, true, err
	}
	id, err = r.registerAnew(req)
	return id, false, err
}

// resume gives a node its id again: a restart is no registration (CAR-10).
func (r *Registry) resume(req Registration) (api.Identity, error) {
	n := r.nodes[req.Resume.ID]
	switch {
	case n == nil:
		return r.adopt(req)
	case n.Superseded:
		return api.Identity{}, r.refuse(newError(Superseded, "another registration superseded this one of node %s", n.Name))
	case n.Name != req.Node.Name:
		return api.Identity{}, r.refuse(newError(Invalid, "id %s is of node %s, not of %s", n.ID, n.Name, req.Node.Name))
	case req.Resume.Epoch < n.Epoch && (n.used || req.Resume.Epoch != n.prev):
		return api.Identity{}, r.refuse(newError(StaleEpoch, "epoch %d of node %s is over, %d runs", req.Resume.Epoch, n.Name, n.Epoch))
	case req.Resume.Epoch >= maxEpoch:
		return api.Identity{}, r.refuse(newError(Invalid, "no epoch is %d", req.Resume.Epoch))
	}
	rec := req.Node
	rec.ID, rec.Registered = n.ID, n.Registered
	rec.Epoch = max(r.epoch, req.Resume.Epoch) + 1
	rec.Rank = n.Rank
	if n.lost {
		rec.Rank = rec.Epoch
	}
	if err := r.cfg.Store.PutNodes(rec.Epoch, rec); err != nil {
		return api.Identity{}, r.refuse(newError(Storage, "%v", err))
	}
	before := n.Epoch
	n.session.end(newError(StaleEpoch, "node %s was resumed with a newer epoch", n.Name))
	n.session = newSession()
	// While nothing used the epoch, the one that is proven stays good: its holder
	// may ask again for an answer that got lost.
	if n.used {
		n.prev = before
	}
	n.Node, n.used, n.peer = rec, false, req.Peer
	r.epoch = rec.Epoch
	r.comeAlive(n)
	return api.Identity{ID: n.ID, Epoch: n.Epoch}, nil
}

// adopt takes over the id of a node that the store lost: nobody else has the
// name, so nothing contests it (CAR-50). The epoch stays, so that the order of
// the nodes does.
func (r *Registry) adopt(req Registration) (api.Identity, error) {
	rec := req.Node
	switch {
	case r.names[rec.Name] != nil:
		return api.Identity{}, r.refuse(newError(UnknownNode, "no node has the id %q", req.Resume.ID))
	case !validID(req.Resume.ID):
		return api.Identity{}, r.refuse(newError(Invalid, "%q is no id", req.Resume.ID))
	case req.Resume.Epoch == 0 || req.Resume.Epoch >= maxEpoch:
		return api.Identity{}, r.refuse(newError(Invalid, "no epoch is %d", req.Resume.Epoch))
	}
	rec.ID, rec.Epoch, rec.Registered = req.Resume.ID, req.Resume.Epoch, time.Now().UTC()
	return r.enter(rec, max(r.epoch, rec.Epoch), req.Peer)
}

// registerAnew gives a fresh id, if nobody who lives holds the name.
func (r *Registry) registerAnew(req Registration) (api.Identity, error) {
	rec := req.Node
	if old := r.names[rec.Name]; old != nil && !old.lost && !newerBoot(rec, old.Node) {
		return api.Identity{}, r.refuse(newError(NameTaken,
			"node %s at %s holds the name since %s and lives", old.Name, old.Address, stamp(old.since)))
	}
	id, err := newID()
	if err != nil {
		return api.Identity{}, r.refuse(newError(Storage, "%v", err))
	}
	rec.ID, rec.Epoch, rec.Registered = id, r.epoch+1, time.Now().UTC()
	return r.enter(rec, rec.Epoch, req.Peer)
}

// newerBoot reports whether the same machine started again since old registered.
func newerBoot(rec, old store.Node) bool {
	return rec.MachineID != "" && rec.MachineID == old.MachineID &&
		rec.BootID != old.BootID && rec.BootTime > old.BootTime
}

// enter stores a new record, atomically with the end of the one that held its name.
func (r *Registry) enter(rec store.Node, epoch uint64, peer string) (api.Identity, error) {
	rec.Rank = rec.Epoch
	old := r.names[rec.Name]
	if old == nil && len(r.names) >= maxNodes {
		return api.Identity{}, r.refuse(newError(Full, "%d nodes are registered", maxNodes))
	}
	if old == nil && peer != "" && r.nodesOf(peer) >= maxNodesOfPeer {
		return api.Identity{}, r.refuse(newError(Full, "%d nodes are registered from %s", maxNodesOfPeer, peer))
	}
	records := []store.Node{rec}
	if old != nil {
		gone := old.Node
		gone.Superseded = true
		records = append(records, gone)
	}
	if err := r.cfg.Store.PutNodes(epoch, records...); err != nil {
		return api.Identity{}, r.refuse(newError(Storage, "%v", err))
	}
	r.epoch = epoch
	n := newNode(rec)
	n.peer = peer
	r.nodes[n.ID], r.names[n.Name] = n, n
	if old != nil {
		r.supersede(old, n)
		r.forgetOldest()
	}
	r.comeAlive(n)
	return api.Identity{ID: n.ID, Epoch: n.Epoch}, nil
}

// supersede ends a registration in favour of another of the same name. The
// services move along until the digest says what there really is.
func (r *Registry) supersede(old, n *node) {
	old.Superseded = true
	old.stop()
	old.session.end(newError(Superseded, "another registration superseded this one of node %s", old.Name))
	n.stored = old.stored
	n.stale, n.staleAt, n.mute, n.muteAt = true, time.Now(), true, time.Now()
	if old.stale {
		n.staleAt, n.mute, n.muteAt = old.staleAt, old.mute, old.muteAt
	}
	n.services, old.services = old.services, map[string]*instance{}
	for name, inst := range n.services {
		delete(r.services[name], old)
		inst.node = n
		r.services[name][n] = inst
	}
	r.log.Warn("node superseded", "node", n.Name, "old", old.ID, "id", n.ID)
	d := r.newDirty()
	d.node(old)
	d.node(n)
	r.publish(d)
}

// forgetOldest bounds the superseded registrations that are remembered.
func (r *Registry) forgetOldest() {
	if len(r.nodes)-len(r.names) <= store.MaxSuperseded {
		return
	}
	var oldest *node
	for _, n := range r.nodes {
		if n.Superseded && (oldest == nil || n.Epoch < oldest.Epoch) {
			oldest = n
		}
	}
	delete(r.nodes, oldest.ID)
}

// comeAlive starts the lease of a node that just registered.
func (r *Registry) comeAlive(n *node) {
	n.endProbe()
	n.lost, n.since = false, time.Now()
	r.startLease(n, r.cfg.Lease)
	r.awaitDigest(n)
	r.log.Info("node registered", "node", n.Name, "id", n.ID, "epoch", n.Epoch, "address", n.Address)
	d := r.newDirty()
	d.node(n) // and its services: the rank decides which of several owners counts
	r.publish(d)
}

var idForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func validID(id string) bool { return idForm.MatchString(id) }

// newID returns a random UUID: 122 bits from the system's generator (CAR-8).
func newID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6] = b[6]&0x0F | 0x40
	b[8] = b[8]&0x3F | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
