package endpoint

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// A GroupHandler gets one datagram that was sent to a group. The bytes are valid
// until it returns. Datagrams to one group come in order; those to several groups
// may come at once.
type GroupHandler func(group, from netip.AddrPort, datagram []byte)

// Groups receives what is sent to any number of multicast groups on one network.
// Its methods are safe for concurrent use, and may be called from the handler but
// for Close.
type Groups struct {
	cfg UDPConfig
	h   GroupHandler

	mu      sync.Mutex
	members map[netip.AddrPort]*member
	closed  bool
	leaving sync.WaitGroup
}

// member is a group that was joined, so many times.
type member struct {
	u    *UDP
	uses int
}

// NewGroups returns a set of groups, empty at first. cfg is as for
// [ListenMulticast].
func NewGroups(cfg UDPConfig, h GroupHandler) *Groups {
	return &Groups{cfg: cfg, h: h, members: make(map[netip.AddrPort]*member)}
}

// Join begins to receive from a group, or counts another use of it.
func (g *Groups) Join(group netip.AddrPort) error {
	group = Canonical(group, "")
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return net.ErrClosed
	}
	if m := g.members[group]; m != nil {
		m.uses++
		return nil
	}
	u, err := ListenMulticast(group, g.cfg)
	if err != nil {
		return err
	}
	g.members[group] = &member{u, 1}
	u.Serve(func(from netip.AddrPort, b []byte) { g.h(group, from, b) })
	return nil
}

// Leave undoes one Join. After the last the group is left; a datagram that was
// received before may still come.
func (g *Groups) Leave(group netip.AddrPort) {
	group = Canonical(group, "")
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[group]
	if m == nil {
		return
	}
	if m.uses--; m.uses > 0 {
		return
	}
	delete(g.members, group)
	g.leaving.Go(func() { m.u.Close() }) // it waits for the handler, which may be who calls
}

// Rejoin joins all groups anew, as [UDP.Rejoin] does. Errors of several groups are
// joined; those groups may be tried again.
func (g *Groups) Rejoin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.u.Rejoin())
	}
	return errors.Join(errs...)
}

// Stats returns the sum of the counters of the groups that are joined.
func (g *Groups) Stats() (sum UDPStats) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		s := m.u.Stats()
		sum.Received += s.Received
		sum.Filtered += s.Filtered
		sum.Dropped += s.Dropped
	}
	return sum
}

// Close leaves all groups and waits until the handler has returned.
func (g *Groups) Close() error {
	g.mu.Lock()
	g.closed = true
	members := g.members
	g.members = nil
	g.mu.Unlock()
	var errs []error
	for _, m := range members {
		errs = append(errs, m.u.Close())
	}
	g.leaving.Wait()
	return errors.Join(errs...)
}
