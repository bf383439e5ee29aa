package runtime

import (
	"net/netip"
	"sync/atomic"

	"carisma.dev/gateway/someip/endpoint"
)

// remote is an instance of another host that clients or subscriptions use. It
// exists while they do, whether the instance is there or not.
type remote struct {
	n      *Network
	key    InstanceKey
	wiring *wiring
	udp    endpoint.PacketSocket // what it is reached with
	state  atomic.Pointer[remoteState]

	// upstreams are the subscribed eventgroups, for the receive path: replaced,
	// never changed.
	upstreams atomic.Pointer[[]*upstream]

	listed  *remoteState         // under which it is in n.sources; guarded by n.mu
	clients map[*Client]struct{} // guarded by n.mu
	users   int                  // clients and upstreams; guarded by n.mu
}

// remoteState is the availability with what the call path needs. It is replaced,
// never changed.
type remoteState struct {
	Availability
	link *link // to Endpoints.TCP while Up and offered over TCP
}

func (s *remoteState) unavailable() error {
	return &UnavailableError{Key: s.Key, Reason: s.Reason, Since: s.Since}
}

func (r *remote) availability() Availability { return r.state.Load().Availability }

// stillAt returns nil while the instance is reached at an address, else why it
// is not.
func (r *remote) stillAt(addr netip.AddrPort) error {
	st := r.state.Load()
	if st.Up && (st.Endpoints.UDP == addr || st.Endpoints.TCP == addr) {
		return nil
	}
	if st.Up {
		return &UnavailableError{Key: r.key, Reason: ReasonEndpointChange, Since: st.Since}
	}
	return st.unavailable()
}

// remoteOf returns the record of an instance, new if need be. n.mu is held.
func (n *Network) remoteOf(key InstanceKey) (*remote, error) {
	if r := n.remotes[key]; r != nil {
		return r, nil
	}
	w, err := n.wiringOf(key)
	if err != nil {
		return nil, err
	}
	socket, err := n.clientSocket(w.dtls)
	if err != nil {
		return nil, err
	}
	r := &remote{n: n, key: key, wiring: w, udp: socket, clients: make(map[*Client]struct{})}
	r.upstreams.Store(new([]*upstream))
	st := &remoteState{Availability: Availability{Key: key, Reason: ReasonNotOffered, Since: n.now()}}
	if seen, ok := n.seen[key]; ok {
		st.Availability = seen
	}
	n.remotes[key] = r
	n.setState(r, st)
	return r, nil
}

// setState makes st the state of r, with its link. n.mu is held.
func (n *Network) setState(r *remote, st *remoteState) {
	old := r.state.Load()
	if st.Up && st.Endpoints.TCP.IsValid() && n.hasStreams() {
		st.link = n.holdLink(st.Endpoints.TCP, r.wiring.tls)
	}
	r.state.Store(st)
	r.greet()
	if !st.Up {
		r.wiring.reset()
	}
	if old != nil && old.link != nil {
		n.dropLink(old.link)
	}
	n.sources.list(r)
}

// hold and unuse count the users of r: the first makes discovery look for it. n.mu
// is held.
func (n *Network) hold(r *remote) {
	if r.users++; r.users == 1 {
		n.find(r.key)
	}
}

func (n *Network) unuse(r *remote) {
	if r.users--; r.users > 0 {
		return
	}
	delete(n.remotes, r.key)
	n.stopFind(r.key)
	if l := r.state.Load().link; l != nil {
		n.dropLink(l)
	}
	n.sources.list(r)
}

// clientSocket returns the socket of the client side that a layer protects; nil is
// none. n.mu is held.
func (n *Network) clientSocket(layer endpoint.PacketLayer) (endpoint.PacketSocket, error) {
	if layer == nil {
		return n.udp, nil
	}
	if n.cfg.Sockets != nil {
		return nil, ErrNotHere
	}
	if s := n.secured[layer]; s != nil {
		return s, nil
	}
	cfg := n.udpConfig(0)
	cfg.Ports = endpoint.PortRange(n.cfg.ClientPorts)
	u, err := endpoint.ListenUDP(cfg)
	if err != nil {
		return nil, err
	}
	s, err := layer.Client(u)
	if err != nil {
		u.Close()
		return nil, err
	}
	n.secured[layer] = s
	watchHandshakes(s, clientShakes{n, s})
	n.serveClient(s)
	return s, nil
}

// greet begins the DTLS association by which a server can send us events: it is the
// client who begins. n.mu is held.
func (r *remote) greet() {
	st := r.state.Load()
	if r.wiring.dtls == nil || !st.Up || !st.Endpoints.UDP.IsValid() || !r.subscribed() {
		return
	}
	if err := r.udp.Send(st.Endpoints.UDP, nil); err != nil {
		r.n.stats.sendErrors.Add(1)
	}
}

// serveClient receives from a socket of the client side.
func (n *Network) serveClient(s endpoint.PacketSocket) {
	n.serveBatches(s, func(from netip.AddrPort, b []byte) {
		n.receiveClient(arrival{by: overUDP, from: from, to: s.LocalAddr(), socket: s}, b)
	})
}

// holdLink and dropLink share the links of the network. n.mu is held.
func (n *Network) holdLink(addr netip.AddrPort, layer endpoint.StreamLayer) *link {
	l := n.links[addr]
	if l == nil {
		l = newLink(n, addr, layer)
		n.links[addr] = l
	}
	if l.layer != layer {
		n.log.Warn("link.layer", "server", addr, "problem", "its services are not protected in the same way")
		return nil
	}
	l.refs++
	return l
}

func (n *Network) dropLink(l *link) {
	if l.refs--; l.refs == 0 {
		delete(n.links, l.remote)
		l.close() // CL-8
	}
}
