package runtime

import (
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// StaticInstance is an instance of another host that is known without service
// discovery (SUB-15): what is configured takes the place of its offers and of the
// answers to subscriptions.
type StaticInstance struct {
	Key       InstanceKey
	Minor     uint32
	Endpoints Endpoints // at least one
	// Multicast is where its eventgroups are sent to, of those that are.
	Multicast map[uint16]netip.AddrPort
}

// StaticSubscriber gets the events of an eventgroup over UDP without having asked
// (SUB-15).
type StaticSubscriber struct {
	Eventgroup uint16
	UDP        netip.AddrPort // its endpoint, or a multicast group
}

// AddStatic makes an instance available until remove is called. Nothing is sent to
// look for it, and offers of it are ignored. Its TCP connection is opened when a
// call or subscription needs it, and again for as long as one does.
func (n *Network) AddStatic(s StaticInstance) (remove func(), err error) {
	if !s.Key.Valid() || !s.Endpoints.UDP.IsValid() && !s.Endpoints.TCP.IsValid() {
		return nil, fmt.Errorf("runtime: static instance %v: one instance with an endpoint is needed", s.Key)
	}
	n.mu.Lock()
	defer n.callbacks.run()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, ErrClosed
	case n.seen[s.Key].Up, n.remotes[s.Key] != nil:
		return nil, fmt.Errorf("%w: %v is known already", ErrInUse, s.Key)
	}
	n.statics[s.Key] = &s
	n.available(sd.Available{Key: s.Key, Minor: s.Minor, Endpoints: s.Endpoints})
	return func() { n.removeStatic(&s) }, nil
}

func (n *Network) removeStatic(s *StaticInstance) {
	n.mu.Lock()
	if n.statics[s.Key] == s && !n.closed {
		delete(n.statics, s.Key)
		n.unavailable(s.Key, ReasonClosed)
		if r := n.remotes[s.Key]; r != nil { // from now on by discovery
			n.find(s.Key)
			for _, u := range *r.upstreams.Load() {
				n.leaveStatic(u)
				_ = n.request(u) // it is as good as the static one was
			}
		}
	}
	n.mu.Unlock()
	n.callbacks.run()
}

// subscribeStatic lets a subscription stand without anybody's consent. n.mu is held,
// as for all here.
func (n *Network) subscribeStatic(s *StaticInstance, u *upstream) {
	if group := s.Multicast[u.key.Eventgroup]; group.IsValid() && !u.joined.IsValid() {
		u.joined = group
		n.join(group)
	}
	if l := u.remote.state.Load().link; u.tcp && l != nil && l.conn.Load() == nil {
		_, _ = l.dial() // fails only where the link is closed: removed
		u.setStatus(SubscriptionWaiting, ReasonConnection)
		return
	}
	u.setStatus(SubscriptionActive, "")
}

// request subscribes by service discovery, or changes what was subscribed for.
func (n *Network) request(u *upstream) error {
	want := sd.Subscription{Key: u.key, TCP: u.tcp}
	if u.udp {
		want.UDP = u.remote.udp.LocalAddr()
	}
	actions, err := n.machine.Subscribe(n.now(), want)
	if err == nil {
		n.perform(actions)
	}
	return err
}

// leaveStatic undoes subscribeStatic.
func (n *Network) leaveStatic(u *upstream) {
	if u.joined.IsValid() {
		n.groups.Leave(u.joined)
		u.joined = netip.AddrPort{}
	}
}

// staticLink follows the connection that subscriptions of static instances use, and
// opens it again.
func (n *Network) staticLink(l *link) {
	for key, s := range n.statics {
		r := n.remotes[key]
		if r == nil || r.state.Load().link != l {
			continue
		}
		for _, u := range *r.upstreams.Load() {
			if u.tcp {
				n.subscribeStatic(s, u)
			}
		}
	}
}

// staticSubscribers are those of the configuration.
func (o *Offering) staticSubscribers() (list []sd.Subscriber) {
	for _, s := range o.cfg.Subscribers {
		list = append(list, sd.Subscriber{
			Instance: o.key, Eventgroup: s.Eventgroup, Peer: s.UDP, Endpoints: sd.Endpoints{UDP: s.UDP},
		})
	}
	return list
}

// connections are where TCP events go that nobody can subscribe to.
func (o *Offering) connections() (list []way) {
	if !o.cfg.Unannounced || o.tcp == nil {
		return nil
	}
	for c := range o.tcp.conns {
		list = append(list, way{n: o.n, conn: c, to: c.RemoteAddr()})
	}
	return list
}

// connected gives a new connection, or takes one that ended, to and from the events
// of the unannounced offerings of a port.
func (p *port) connected(c *endpoint.Conn, up bool) {
	if up {
		p.conns[c] = struct{}{}
	} else {
		delete(p.conns, c)
	}
	for _, list := range *p.services.Load() {
		for _, o := range list {
			if !o.cfg.Unannounced {
				continue
			}
			for _, e := range o.events {
				if !e.cfg.Reliable {
					continue
				}
				targets := o.targets(e)
				e.setTargets(targets)
				if up {
					e.initial(way{n: o.n, conn: c, to: c.RemoteAddr()})
				}
				o.tellSubscribers(e, len(targets))
			}
		}
	}
}
