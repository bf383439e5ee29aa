package sd

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// connection is a TCP connection of ours to the endpoint of an instance. All
// subscriptions there share it (TCP-2).
type connection struct {
	local netip.AddrPort // our end; invalid: not open
	asked bool           // NeedConnection was told and not answered yet
}

// connect lets a subscription wait for a connection, and asks for it unless that
// has been done.
func (m *Machine) connect(s *subscription, server netip.AddrPort) {
	if s.state == subSent {
		s.resync = true // the Subscribe before has not been acknowledged
	}
	s.state = subConnecting
	c := m.conns[server]
	if c == nil {
		c = new(connection)
		m.conns[server] = c
	}
	if !c.asked {
		c.asked = true
		m.emit(NeedConnection{Server: server, Refused: s.refused})
	}
}

// Connected tells that a TCP connection of ours to an instance is open, and its
// local end. It answers NeedConnection, but may be told unasked.
func (m *Machine) Connected(now time.Time, server, local netip.AddrPort) []Action {
	server, local = normal(server), normal(local)
	c := m.conns[server]
	if c == nil {
		c = new(connection)
		m.conns[server] = c
	}
	replaced := c.local.IsValid() && c.local != local
	if replaced {
		m.lose(server)
	}
	c.local, c.asked = local, false
	for s := range m.using(server) {
		if s.state == subConnecting || s.state == subIdle && replaced {
			s.refused = false
			m.subscribe(now, s)
		}
	}
	return m.flush()
}

// Disconnected tells that a TCP connection of ours closed, or could not be
// opened. One that was open is asked for again at once (TCP-3), one that could
// not be opened with the next offer.
func (m *Machine) Disconnected(_ time.Time, server netip.AddrPort) []Action {
	server = normal(server)
	c := m.conns[server]
	if c == nil {
		return nil
	}
	wasOpen := c.local.IsValid()
	delete(m.conns, server)
	m.lose(server)
	if wasOpen {
		for s := range m.using(server) {
			m.connect(s, server)
		}
	}
	return m.flush()
}

// lose ends the subscriptions whose events came over a connection.
func (m *Machine) lose(server netip.AddrPort) {
	for s := range m.using(server) {
		m.endSubscription(s, ReasonDisconnected, true)
	}
}

// using yields the subscriptions that want TCP from an endpoint that is offered.
func (m *Machine) using(server netip.AddrPort) func(yield func(*subscription) bool) {
	return func(yield func(*subscription) bool) {
		offers := make(map[someip.InstanceKey]*remoteOffer)
		for key, o := range m.remote {
			if o.info.Endpoints.TCP == server {
				offers[key] = o
			}
		}
		for _, o := range sortedOffers(offers) {
			for _, s := range m.bySubscribed[o.info.Key] {
				if s.spec.TCP && !yield(s) {
					return
				}
			}
		}
	}
}

// forgetConnection drops what is known of a connection that no instance offers
// any more: its socket is to be closed (CL-8).
func (m *Machine) forgetConnection(server netip.AddrPort) {
	if m.conns[server] == nil {
		return
	}
	for _, o := range m.remote {
		if o.info.Endpoints.TCP == server {
			return
		}
	}
	delete(m.conns, server)
}
