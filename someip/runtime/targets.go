package runtime

import (
	"fmt"
	"net/netip"
	"slices"

	"carisma.dev/gateway/someip/sd"
)

func (o *Offering) checkEventgroup(g EventgroupConfig) error {
	switch {
	case !slices.ContainsFunc(o.cfg.Events, func(e EventConfig) bool {
		return !e.Reliable && slices.Contains(e.Eventgroups, g.ID)
	}):
		return fmt.Errorf("runtime: %v: eventgroup %#04x has no event over UDP", o.key, g.ID)
	case g.Threshold < 0, g.Threshold > 0 && (!g.Multicast.Addr().IsMulticast() || g.Multicast.Port() == 0):
		return fmt.Errorf("runtime: %v: eventgroup %#04x: multicast to %v from %d subscribers on", o.key, g.ID, g.Multicast, g.Threshold)
	}
	return nil
}

// targets is where an event goes: each endpoint once, whatever the number of its
// eventgroups that it subscribed to. n.mu is held.
func (o *Offering) targets(e *event) []way {
	list, reached := o.multicasts(e)
	if e.cfg.Reliable {
		list = o.connections()
	}
	for _, s := range o.subscribers {
		if !slices.Contains(e.cfg.Eventgroups, s.Eventgroup) || slices.Contains(reached, s.Peer) {
			continue
		}
		if w, ok := o.wayTo(e, s.Endpoints); ok && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// multicasts returns the multicast groups that an event goes to, and the peers that
// it reaches there.
func (o *Offering) multicasts(e *event) (list []way, reached []netip.AddrPort) {
	if e.cfg.Reliable {
		return nil, nil
	}
	for _, g := range o.cfg.Eventgroups {
		if g.Threshold == 0 || !slices.Contains(e.cfg.Eventgroups, g.ID) {
			continue
		}
		var peers []netip.AddrPort
		bare := false // one that has no endpoint of its own
		for _, s := range o.subscribers {
			if s.Eventgroup == g.ID {
				peers = append(peers, s.Peer)
				bare = bare || !s.Endpoints.UDP.IsValid()
			}
		}
		if len(peers) < g.Threshold && !bare {
			continue
		}
		if w := (way{n: o.n, udp: o.udp.socket(), to: g.Multicast}); !slices.Contains(list, w) {
			list = append(list, w)
		}
		reached = append(reached, peers...)
	}
	return list, reached
}

// wayTo is how an event reaches a subscriber by itself: TCP events on the client's
// own connection.
func (o *Offering) wayTo(e *event, to sd.Endpoints) (way, bool) {
	if !e.cfg.Reliable {
		return way{n: o.n, udp: o.udp.socket(), to: o.n.at(to.UDP)}, to.UDP.IsValid()
	}
	if !to.TCP.IsValid() {
		return way{}, false
	}
	c := o.tcp.tcp.Conn(o.n.at(to.TCP))
	return way{n: o.n, conn: c, to: to.TCP}, c != nil
}
