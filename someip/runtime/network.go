package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// Network is the part of a stack that lives on one SOME/IP-SD domain. Its
// methods are safe for concurrent use.
type Network struct {
	cfg   NetworkConfig
	log   *slog.Logger
	stats counters
	work  sync.WaitGroup // goroutines besides those of the sockets

	udp       endpoint.PacketSocket // the client side's socket (UDP-4)
	groups    multicastGroups       // of multicast events
	discovery discovery
	segments  reassembly
	lanes     lanes
	trains    trains

	// Read on the receive path without a lock.
	clients []atomic.Pointer[Client] // by client id, from ClientIDs.First on
	sources sources

	requests drain // those that wait for the answer of a handler

	calls sync.Pool // of *call

	callbacks serial // calls of the user's functions; run without mu held

	mu        sync.Mutex // guards what follows, and owns the machine
	closed    bool
	machine   *sd.Machine
	seen      map[InstanceKey]Availability // instances that were offered to us
	remotes   map[InstanceKey]*remote
	links     map[netip.AddrPort]*link
	upstreams map[sd.SubscriptionKey]*upstream
	observers []*observer
	finds     map[InstanceKey]int
	statics   map[InstanceKey]*StaticInstance
	// deployments are by instance, or by service with AnyInstance.
	deployments map[InstanceKey]Deployment
	secured     map[endpoint.PacketLayer]endpoint.PacketSocket // further sockets of the client side
	offerings   map[InstanceKey]*Offering
	udpPorts    map[uint16]*port
	tcpPorts    map[uint16]*port
	ending      map[ending]chan struct{}
	nextClient  int // where the search for a free client id starts
}

func newNetwork(cfg NetworkConfig, log *slog.Logger) (*Network, error) {
	cfg.SD = cfg.SD.withDefaults()
	cfg.CallTimeout = orDefault(cfg.CallTimeout, DefaultCallTimeout)
	cfg.DrainTimeout = orDefault(cfg.DrainTimeout, DefaultDrainTimeout)
	cfg.MaxMessage = orDefault(cfg.MaxMessage, endpoint.DefaultMaxMessage)
	n := &Network{
		cfg: cfg, log: log,
		clients:     make([]atomic.Pointer[Client], int(cfg.ClientIDs.Last-cfg.ClientIDs.First)+1),
		seen:        make(map[InstanceKey]Availability),
		remotes:     make(map[InstanceKey]*remote),
		links:       make(map[netip.AddrPort]*link),
		upstreams:   make(map[sd.SubscriptionKey]*upstream),
		finds:       make(map[InstanceKey]int),
		statics:     make(map[InstanceKey]*StaticInstance),
		deployments: make(map[InstanceKey]Deployment),
		secured:     make(map[endpoint.PacketLayer]endpoint.PacketSocket),
		offerings:   make(map[InstanceKey]*Offering),
		udpPorts:    make(map[uint16]*port),
		tcpPorts:    make(map[uint16]*port),
		ending:      make(map[ending]chan struct{}),
	}
	var err error
	if n.machine, err = n.newMachine(); err != nil {
		return nil, fmt.Errorf("runtime: network %q: %w", cfg.Name, err)
	}
	n.calls.New = newCall
	n.requests.idle = make(chan struct{}, 1)
	n.segments.init(cfg.Reassembly)
	n.lanes.init()
	n.trains.init(&n.stats.sendErrors)
	n.sources.by = make(map[source][]*remote)
	client := n.udpConfig(0)
	client.Ports = endpoint.PortRange(cfg.ClientPorts)
	if n.udp, err = n.listenUDP(client); err != nil {
		return nil, fmt.Errorf("runtime: network %q: %w", cfg.Name, err)
	}
	if err := n.openDiscovery(); err != nil {
		n.udp.Close()
		return nil, fmt.Errorf("runtime: network %q: service discovery: %w", cfg.Name, err)
	}
	n.groups = n.newGroups()
	n.serveClient(n.udp)
	n.startDiscovery()
	return n, nil
}

func (n *Network) udpConfig(port uint16) endpoint.UDPConfig {
	return endpoint.UDPConfig{
		Local:         n.own(port),
		Interface:     n.cfg.Interface,
		ReceiveBuffer: n.cfg.ReceiveBuffer,
		Accept:        n.cfg.accept(),
		Marking:       n.cfg.Marking,
	}
}

func (n *Network) tcpConfig() endpoint.TCPConfig {
	streams, _ := n.cfg.Sockets.(endpoint.Streams)
	return endpoint.TCPConfig{
		MaxMessage: n.cfg.MaxMessage, Cookies: n.cfg.MagicCookies, Marking: n.cfg.Marking, Streams: streams,
	}
}

// own returns the own address with a port.
func (n *Network) own(port uint16) netip.AddrPort {
	return n.at(netip.AddrPortFrom(n.cfg.Address.Addr(), port))
}

// at gives a link-local address its zone, which neither the configuration nor service
// discovery has (case 20).
func (n *Network) at(a netip.AddrPort) netip.AddrPort { return endpoint.Canonical(a, n.cfg.Interface) }

func (n *Network) maxPayload() int { return n.cfg.MaxMessage - someip.HeaderSize }

func (n *Network) now() time.Time { return time.Now() }

// Name returns the configured name.
func (n *Network) Name() string { return n.cfg.Name }

// Address returns the own address with its subnet.
func (n *Network) Address() netip.Prefix { return n.cfg.Address }

// Client returns a new client of an instance, with a client id of its own. The
// instance need not be there: it is looked for from now on.
func (n *Network) Client(key InstanceKey) (*Client, error) {
	if !key.Valid() {
		return nil, fmt.Errorf("runtime: %v is not one instance", key)
	}
	n.mu.Lock()
	c, err := n.newClient(key)
	n.mu.Unlock()
	n.callbacks.run()
	return c, err
}

func (n *Network) newClient(key InstanceKey) (*Client, error) {
	if n.closed {
		return nil, ErrClosed
	}
	slot, ok := n.freeClient()
	if !ok {
		return nil, fmt.Errorf("%w in %#04x-%#04x", ErrNoClientID, n.cfg.ClientIDs.First, n.cfg.ClientIDs.Last)
	}
	r, err := n.remoteOf(key)
	if err != nil {
		return nil, err
	}
	c := &Client{n: n, key: key, id: n.cfg.ClientIDs.First + uint16(slot), instance: r, pending: make(map[uint16]*call)}
	n.clients[slot].Store(c)
	r.clients[c] = struct{}{}
	n.hold(r)
	return c, nil
}

// freeClient finds an unused client id. Ids are used in turn, so that a late
// answer to a closed client does not meet its successor.
func (n *Network) freeClient() (int, bool) {
	for i := range n.clients {
		slot := (n.nextClient + i) % len(n.clients)
		if n.clients[slot].Load() == nil {
			n.nextClient = slot + 1
			return slot, true
		}
	}
	return 0, false
}

func (n *Network) dropClient(c *Client) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clients[c.id-n.cfg.ClientIDs.First].Store(nil)
	delete(c.instance.clients, c)
	n.unuse(c.instance)
}

// close ends everything, in the order that lets peers know.
func (n *Network) close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.perform(n.machine.Shutdown(n.now())) // StopOffers and StopSubscribes leave here
	n.closed = true
	n.mu.Unlock()
	n.callbacks.run()
	n.requests.wait(n.cfg.DrainTimeout)
	return n.end()
}

// end closes the sockets of a closed network, fails what waits and waits for the
// goroutines.
func (n *Network) end() error {
	n.mu.Lock()
	for _, o := range n.offerings {
		o.cancel()
	}
	for _, l := range n.links {
		l.close()
	}
	n.mu.Unlock()
	for i := range n.clients {
		if c := n.clients[i].Load(); c != nil {
			c.Close()
		}
	}
	n.trains.close()
	// Nothing is added to these maps any more.
	errs := []error{n.closeDiscovery(), n.udp.Close(), n.groups.Close()}
	for _, s := range n.secured {
		errs = append(errs, s.Close())
	}
	for _, ports := range []map[uint16]*port{n.udpPorts, n.tcpPorts} {
		for _, p := range ports {
			errs = append(errs, p.close())
		}
	}
	n.lanes.close()
	n.work.Wait()
	return errors.Join(errs...)
}
