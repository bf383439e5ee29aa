package runtime

import (
	"errors"
	"net/netip"

	"carisma.dev/gateway/someip/endpoint"
)

// Sockets opens the sockets of a network in place of the system's. Networks in
// memory for tests have them: see package someiptest. Those that are
// [endpoint.Streams] too have TCP.
type Sockets interface {
	ListenUDP(cfg endpoint.UDPConfig) (endpoint.PacketSocket, error)
	ListenMulticast(group netip.AddrPort, cfg endpoint.UDPConfig) (endpoint.PacketSocket, error)
}

// ErrNotHere says that [NetworkConfig.Sockets] do not have TCP, or DTLS.
var ErrNotHere = errors.New("runtime: sockets of the system are needed")

// hasStreams reports whether there is TCP on the network.
func (n *Network) hasStreams() bool {
	_, ok := n.cfg.Sockets.(endpoint.Streams)
	return ok || n.cfg.Sockets == nil
}

func (n *Network) listenUDP(cfg endpoint.UDPConfig) (endpoint.PacketSocket, error) {
	if n.cfg.Sockets != nil {
		return n.cfg.Sockets.ListenUDP(cfg)
	}
	return notNil(endpoint.ListenUDP(cfg))
}

func (n *Network) listenMulticast(group netip.AddrPort) (endpoint.PacketSocket, error) {
	cfg := n.udpConfig(0)
	if n.cfg.Sockets != nil {
		return n.cfg.Sockets.ListenMulticast(group, cfg)
	}
	return notNil(endpoint.ListenMulticast(group, cfg))
}

// notNil makes no socket out of a nil one.
func notNil(u *endpoint.UDP, err error) (endpoint.PacketSocket, error) {
	if err != nil {
		return nil, err
	}
	return u, nil
}

// batchSocket is a socket that tells what came together, as [endpoint.UDP] does.
type batchSocket interface {
	ServeBatches(h endpoint.PacketHandler, end func())
}

// serveBatches receives from a socket. What is collected while h has what came
// together leaves after it.
func (n *Network) serveBatches(s endpoint.PacketSocket, h endpoint.PacketHandler) {
	b, ok := s.(batchSocket)
	if !ok {
		s.Serve(func(from netip.AddrPort, data []byte) {
			if n.trains.used.Load() {
				n.trains.begin()
				defer n.trains.end()
			}
			h(from, data)
		})
		return
	}
	begun := false // one goroutine has both functions
	b.ServeBatches(func(from netip.AddrPort, data []byte) {
		if !begun && n.trains.used.Load() {
			begun = true
			n.trains.begin()
		}
		h(from, data)
	}, func() {
		if begun {
			begun = false
			n.trains.end()
		}
	})
}

// multicastGroups are the groups whose events are received.
type multicastGroups interface {
	Join(group netip.AddrPort) error
	Leave(group netip.AddrPort)
	Rejoin() error
	Stats() endpoint.UDPStats
	Close() error
}

func (n *Network) newGroups() multicastGroups {
	h := func(group, from netip.AddrPort, b []byte) {
		n.receiveClient(arrival{by: multicast, from: from, to: group}, b)
	}
	if n.cfg.Sockets != nil {
		return &openedGroups{n: n, h: h, members: make(map[netip.AddrPort]*openedGroup)}
	}
	return endpoint.NewGroups(n.udpConfig(0), h)
}

// openedGroups are those of [NetworkConfig.Sockets]. They are used with n.mu held.
type openedGroups struct {
	n       *Network
	h       endpoint.GroupHandler
	members map[netip.AddrPort]*openedGroup
}

type openedGroup struct {
	socket endpoint.PacketSocket
	uses   int
}

// Join implements [multicastGroups].
func (g *openedGroups) Join(group netip.AddrPort) error {
	if m := g.members[group]; m != nil {
		m.uses++
		return nil
	}
	s, err := g.n.listenMulticast(group)
	if err != nil {
		return err
	}
	g.members[group] = &openedGroup{s, 1}
	s.Serve(func(from netip.AddrPort, b []byte) { g.h(group, from, b) })
	return nil
}

// Leave implements [multicastGroups].
func (g *openedGroups) Leave(group netip.AddrPort) {
	m := g.members[group]
	if m == nil {
		return
	}
	if m.uses--; m.uses == 0 {
		delete(g.members, group)
		g.n.work.Go(func() { m.socket.Close() }) // it waits for a handler, which may wait for n.mu
	}
}

// Rejoin implements [multicastGroups].
func (g *openedGroups) Rejoin() error { return nil }

// Stats implements [multicastGroups].
func (g *openedGroups) Stats() endpoint.UDPStats { return endpoint.UDPStats{} }

// Close implements [multicastGroups].
func (g *openedGroups) Close() error {
	var errs []error
	for _, m := range g.members {
		errs = append(errs, m.socket.Close())
	}
	return errors.Join(errs...)
}
