package runtime

import (
	"net/netip"
	"slices"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// available records that an instance is offered. n.mu is held, as for all here.
func (n *Network) available(a sd.Available) {
	a.Endpoints.UDP, a.Endpoints.TCP = n.at(a.Endpoints.UDP), n.at(a.Endpoints.TCP)
	now := Availability{
		Key: a.Key, Minor: a.Minor, Endpoints: a.Endpoints, Configuration: a.Configuration, LoadBalancing: a.LoadBalancing,
		Up: true, Since: n.now(),
	}
	was := n.seen[a.Key]
	if was.Up {
		if was.Endpoints == now.Endpoints && was.Minor == now.Minor && slices.Equal(was.Configuration, now.Configuration) &&
			sameRank(was.LoadBalancing, now.LoadBalancing) {
			return
		}
		now.Since = was.Since
	}
	n.log.Info("instance.up", "instance", a.Key, "minor", a.Minor, "udp", a.Endpoints.UDP, "tcp", a.Endpoints.TCP)
	n.seen[a.Key] = now
	if r := n.remotes[a.Key]; r != nil {
		n.setState(r, &remoteState{Availability: now})
		if !was.Up || was.Endpoints != now.Endpoints { // else what was acknowledged still is
			for _, u := range *r.upstreams.Load() {
				u.setStatus(SubscriptionWaiting, ReasonPending)
			}
		}
	}
	n.changed(now)
}

func sameRank(a, b *LoadBalancing) bool { return a == b || a != nil && b != nil && *a == *b }

// unavailable records that an instance is no more, and ends what depends on it.
func (n *Network) unavailable(key InstanceKey, reason Reason) {
	was, known := n.seen[key]
	if !known || !was.Up {
		return
	}
	n.log.Info("instance.down", "instance", key, "reason", reason)
	now := was
	now.Up, now.Reason, now.Since = false, reason, n.now()
	n.seen[key] = now
	if r := n.remotes[key]; r != nil {
		st := &remoteState{Availability: now}
		n.setState(r, st)
		err := st.unavailable()
		for c := range r.clients {
			c.fail(func(*call) bool { return true }, err)
		}
		for _, u := range *r.upstreams.Load() {
			u.setStatus(SubscriptionWaiting, reason)
		}
	}
	n.changed(now)
	n.forget()
}

// maxGone bounds how many instances that went are remembered for the reason.
const maxGone = 4096

// forget drops an instance that went and that nobody uses, when there are many.
func (n *Network) forget() {
	if len(n.seen) <= maxGone {
		return
	}
	for key, a := range n.seen {
		if !a.Up && n.remotes[key] == nil {
			delete(n.seen, key)
			return
		}
	}
}

func (n *Network) subscriptionChanged(key sd.SubscriptionKey, state SubscriptionState, reason Reason) {
	u := n.upstreams[key]
	if u == nil {
		return
	}
	level := n.log.Debug
	if state == SubscriptionRefused || reason == ReasonMismatch { // case 91
		level = n.log.Warn
	}
	level("subscription."+state.String(), "eventgroup", key, "reason", reason)
	u.setStatus(state, reason)
}

// needConnection opens the connection that subscriptions wait for, or says that
// it is there (SUB-3).
func (n *Network) needConnection(a sd.NeedConnection) {
	l := n.links[n.at(a.Server)]
	if l == nil {
		return // the instance went meanwhile; what it needs is asked for when it is back
	}
	if c := l.conn.Load(); c != nil {
		if !a.Refused {
			n.work.Go(func() { n.linkUp(l, c) }) // not here: the machine is in the middle of its actions
			return
		}
		l.conn.CompareAndSwap(c, nil) // the server does not know it: open another (SUB-11)
		c.Abort()
	}
	_, _ = l.dial() // fails only where the link is closed, see above
}

// linkUp tells discovery of a connection.
func (n *Network) linkUp(l *link, c *endpoint.Conn) {
	n.step(func(m *sd.Machine) []sd.Action {
		n.staticLink(l)
		return m.Connected(n.now(), l.remote, c.LocalAddr())
	})
}

// linkDown fails the calls that went over a connection that has ended (SES-7),
// and tells discovery. Without a connection, one could not be had.
func (n *Network) linkDown(l *link, c *endpoint.Conn, cause error) {
	if c != nil {
		for i := range n.clients {
			if cl := n.clients[i].Load(); cl != nil {
				err := &UnavailableError{Key: cl.key, Reason: ReasonConnection, Since: n.now(), Err: cause}
				cl.fail(func(k *call) bool { return k.conn == c }, err)
			}
		}
	}
	n.step(func(m *sd.Machine) []sd.Action {
		if l.conn.Load() != nil || n.links[l.remote] != l {
			return nil // connected again already, or nobody's any more
		}
		n.staticLink(l)
		return m.Disconnected(n.now(), l.remote)
	})
}

// peerRebooted resets the connections with a host (RB-6).
func (n *Network) peerRebooted(addr netip.Addr) {
	n.log.Info("peer.rebooted", "peer", addr)
	n.segments.forget(n.now(), addr)
	for remote, l := range n.links {
		if c := l.conn.Load(); remote.Addr() == addr && c != nil {
			l.conn.CompareAndSwap(c, nil)
			c.Abort()
		}
	}
	for _, p := range n.tcpPorts {
		p.tcp.AbortFrom(addr)
	}
	for _, p := range n.udpPorts {
		abortFrom(p.packets, addr)
	}
	for _, s := range n.secured {
		abortFrom(s, addr)
	}
}

// abortFrom ends what a protected socket has with a host.
func abortFrom(s endpoint.PacketSocket, host netip.Addr) {
	if p, ok := s.(interface{ AbortFrom(host netip.Addr) }); ok {
		p.AbortFrom(host)
	}
}
