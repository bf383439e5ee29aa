package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// port is a server socket with the offerings that are reached there. Several
// services share it; instances of one service cannot, because the instance id is
// not on the wire (UDP-5).
type port struct {
	n      *Network
	number uint16
	udp    endpoint.PacketSocket // either
	tcp    *endpoint.Listener    // or

	packets endpoint.PacketSocket // udp, or what protects it
	layer   any                   // that does, or protects tcp

	conns map[*endpoint.Conn]struct{} // of tcp; guarded by n.mu

	services atomic.Pointer[map[uint16][]*Offering] // replaced, never changed, under n.mu

	requests atomic.Int64 // those that wait for an answer
	retired  atomic.Bool  // to be closed once there is none
}

// openPort returns the port of that number, opened if it is not yet. n.mu is held,
// as for all here.
func (n *Network) openPort(number uint16, reliable bool, o *Offering) (*port, error) {
	if number == 0 {
		return nil, nil
	}
	if number == AutoPort {
		return n.openAnyPort(reliable, o)
	}
	service, layer := o.key, o.wiring.layer(reliable)
	if number == n.cfg.SD.Port { // UDP-6: case 74
		return nil, fmt.Errorf("%w: port %d is that of service discovery", ErrInUse, number)
	}
	ports := n.portsOf(reliable)
	if p := ports[number]; p != nil {
		if p.layer != layer {
			return nil, fmt.Errorf("%w: port %d is protected otherwise", ErrInUse, number)
		}
		for _, o := range (*p.services.Load())[service.Service] {
			if o.key.Instance != service.Instance {
				return nil, fmt.Errorf("%w: port %d has %v already", ErrInUse, number, o.key) // UDP-5
			}
		}
		return p, nil
	}
	if done := n.ending[ending{number, reliable}]; done != nil {
		return nil, endingError{done}
	}
	p := &port{n: n, number: number, layer: layer, conns: make(map[*endpoint.Conn]struct{})}
	p.services.Store(new(map[uint16][]*Offering))
	if err := p.listen(o.wiring, reliable); err != nil {
		return nil, err
	}
	ports[number] = p
	if reliable {
		p.tcp.Serve(p)
	} else {
		n.serveBatches(p.packets, func(from netip.AddrPort, b []byte) { p.receive(from, nil, b) })
	}
	return p, nil
}

// listen opens the socket of a port.
func (p *port) listen(w *wiring, reliable bool) (err error) {
	n := p.n
	if reliable && !n.hasStreams() || !reliable && w.dtls != nil && n.cfg.Sockets != nil {
		return ErrNotHere
	}
	if reliable {
		cfg := n.tcpConfig()
		cfg.Layer = w.tls
		p.tcp, err = endpoint.ListenTCP(n.own(p.number), cfg)
		return err
	}
	if p.udp, err = n.listenUDP(n.udpConfig(p.number)); err != nil {
		return err
	}
	if p.packets = p.udp; w.dtls == nil {
		return nil
	}
	if p.packets, err = w.dtls.Server(p.udp.(*endpoint.UDP)); err != nil {
		p.udp.Close()
		return err
	}
	watchHandshakes(p.packets, p)
	return nil
}

// openAnyPort opens a port of the configured range that is not open yet.
func (n *Network) openAnyPort(reliable bool, o *Offering) (*port, error) {
	r := n.cfg.Ports
	if (r == Range{}) {
		return nil, fmt.Errorf("runtime: network %q has no ports to choose from", n.cfg.Name)
	}
	ports := n.portsOf(reliable)
	for number := int(r.First); number <= int(r.Last); number++ {
		if ports[uint16(number)] != nil {
			continue
		}
		if p, err := n.openPort(uint16(number), reliable, o); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: all ports of %d-%d", ErrInUse, r.First, r.Last)
}

func (n *Network) portsOf(reliable bool) map[uint16]*port {
	if reliable {
		return n.tcpPorts
	}
	return n.udpPorts
}

func (p *port) addr() netip.AddrPort {
	if p == nil {
		return netip.AddrPort{}
	}
	return p.n.own(p.number)
}

func (p *port) socket() endpoint.PacketSocket {
	if p == nil {
		return nil
	}
	return p.packets
}

func (p *port) add(o *Offering) {
	if p == nil {
		return
	}
	p.retired.Store(false)
	m := maps.Clone(*p.services.Load())
	if m == nil {
		m = make(map[uint16][]*Offering)
	}
	m[o.key.Service] = append(slices.Clone(m[o.key.Service]), o)
	p.services.Store(&m)
}

func (p *port) remove(o *Offering) {
	if p == nil {
		return
	}
	m := maps.Clone(*p.services.Load())
	list := slices.DeleteFunc(slices.Clone(m[o.key.Service]), func(x *Offering) bool { return x == o })
	if len(list) == 0 {
		delete(m, o.key.Service)
	} else {
		m[o.key.Service] = list
	}
	p.services.Store(&m)
}

// release gives a port up that has no offering. It stays open for the answers to
// what was received, and a TCP port while clients are connected: closing is their
// part (TCP-2, case 17).
func (p *port) release() {
	if p == nil || len(*p.services.Load()) > 0 || p.n.closed {
		return
	}
	if p.tcp != nil && p.tcp.Conns() > 0 {
		return
	}
	if !p.retired.Swap(true) && p.requests.Load() > 0 && p.n.cfg.DrainTimeout > 0 {
		time.AfterFunc(p.n.cfg.DrainTimeout, p.tryRelease)
		return
	}
	ports := p.n.portsOf(p.tcp != nil)
	if ports[p.number] == p {
		delete(ports, p.number)
		end := ending{p.number, p.tcp != nil}
		done := make(chan struct{})
		p.n.ending[end] = done
		p.n.work.Go(func() { // it waits for handlers, which may wait for n.mu
			p.close()
			p.n.mu.Lock()
			delete(p.n.ending, end)
			p.n.mu.Unlock()
			close(done)
		})
	}
}

// ending is a port that is being closed.
type ending struct {
	number   uint16
	reliable bool
}

// endingError says that a port can be opened once done is closed: that of an
// offering that was stopped just now.
type endingError struct{ done <-chan struct{} }

// endingTimeout bounds the wait for a port: who waits may be the handler that it
// waits for.
const endingTimeout = time.Second

func (e endingError) wait() error {
	t := time.NewTimer(endingTimeout)
	defer t.Stop()
	select {
	case <-e.done:
		return nil
	case <-t.C:
		return fmt.Errorf("%w: %w", ErrInUse, e)
	}
}

func (endingError) Error() string { return "runtime: the port is being closed" }

func (p *port) tryRelease() {
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.release()
}

// done says that a request was answered.
func (p *port) done() {
	p.n.requests.done()
	if p.requests.Add(-1) == 0 && p.retired.Load() {
		p.tryRelease()
	}
}

func (p *port) close() error {
	if p.tcp == nil {
		return p.packets.Close()
	}
	if p.n.cfg.DrainTimeout <= 0 {
		return p.tcp.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.n.cfg.DrainTimeout)
	defer cancel()
	if err := p.tcp.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // a peer that does not close, or read, is no fault of ours (case 19)
}

// Opened implements [endpoint.AcceptHandler]: discovery takes subscriptions to TCP
// events only from who is connected (SUB-9).
func (p *port) Opened(c *endpoint.Conn) {
	p.n.step(func(m *sd.Machine) []sd.Action {
		p.connected(c, true)
		return m.Accepted(p.n.now(), c.LocalAddr(), c.RemoteAddr())
	})
}

// Message implements [endpoint.ConnHandler].
func (p *port) Message(c *endpoint.Conn, msg []byte) { p.receive(c.RemoteAddr(), c, msg) }

// Closed implements [endpoint.ConnHandler].
func (p *port) Closed(c *endpoint.Conn, err error) {
	n := p.n
	if err != nil {
		n.log.Debug("tcp.closed", "peer", c.RemoteAddr(), "error", err)
	}
	n.mu.Lock()
	if !n.closed {
		p.connected(c, false)
		n.perform(n.machine.Closed(n.now(), c.LocalAddr(), c.RemoteAddr()))
		p.release()
	}
	n.mu.Unlock()
	n.callbacks.run()
}
