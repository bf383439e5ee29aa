package secure

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"

	"carisma.dev/gateway/someip/endpoint"
)

// Stats counts what became of the peers of a DTLS socket.
type Stats struct {
	Peers       int    // associations now
	Established uint64 // handshakes that succeeded
	Failed      uint64 // and that did not
	Refused     uint64 // beyond the limits of the [Config]
	Ignored     uint64 // datagrams that belong to no association, or found no room
	Lost        uint64 // datagrams to send that waited for a handshake that failed
}

// Socket is a UDP socket protected by DTLS, what [DTLS.Client] and [DTLS.Server]
// return. Besides what an [endpoint.PacketSocket] does it counts, and forgets
// peers.
type Socket interface {
	// Stats returns a snapshot of the counters.
	Stats() Stats
	// AbortFrom ends the associations with a host, which was started anew, say
	// (RB-6). A client makes a new one when it sends next.
	AbortFrom(host netip.Addr)
	endpoint.HandshakeSocket
}

// socket implements [Socket].
type socket struct {
	u      *endpoint.UDP
	cfg    Config
	client bool
	open   func(*wire) (*dtls.Conn, error)
	ctx    context.Context //nolint:containedctx // of the handshakes, whoever began them
	cancel context.CancelFunc
	work   sync.WaitGroup
	h      endpoint.PacketHandler
	told   endpoint.HandshakeHandler // nil: nobody

	succeeded, failed, refused, ignored, lost atomic.Uint64

	mu     sync.RWMutex
	peers  map[netip.AddrPort]*association
	next   map[netip.AddrPort]*association // with peers that begin anew
	shakes int                             // handshakes under way
	closed bool
}

func newSocket(u *endpoint.UDP, cfg Config, client bool, open func(*wire) (*dtls.Conn, error)) *socket {
	s := &socket{
		u: u, cfg: cfg, client: client, open: open,
		peers: make(map[netip.AddrPort]*association),
		next:  make(map[netip.AddrPort]*association),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.expire)
	return s
}

// LocalAddr implements [endpoint.PacketSocket].
func (s *socket) LocalAddr() netip.AddrPort { return s.u.LocalAddr() }

// Serve implements [endpoint.PacketSocket]. Nothing is received before, so no
// handshake succeeds.
func (s *socket) Serve(h endpoint.PacketHandler) {
	s.h = h
	s.u.Serve(s.receive)
}

// OnHandshakeFailure implements [endpoint.HandshakeSocket].
func (s *socket) OnHandshakeFailure(h endpoint.HandshakeHandler) { s.told = h }

func (s *socket) deliver(from netip.AddrPort, b []byte) { s.h(from, b) }

// Send implements [endpoint.PacketSocket]. As a client it begins with a peer that
// it has no association with.
func (s *socket) Send(to netip.AddrPort, b []byte) error {
	s.mu.RLock()
	a := s.peers[to]
	ready := a != nil && a.ready
	s.mu.RUnlock()
	if ready {
		return a.send(b)
	}
	return s.wait(to, b)
}

// wait queues a datagram until the handshake is done.
func (s *socket) wait(to netip.AddrPort, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.peers[to]
	switch {
	case s.closed:
		return net.ErrClosed
	case a == nil && !s.client:
		return ErrNotConnected
	case a == nil:
		var err error
		if a, err = s.begin(to); err != nil {
			return err
		}
		s.peers[to] = a
	case len(a.waiting) >= maxWaiting:
		return ErrQueueFull
	}
	if a.ready { // by now
		return a.send(b)
	}
	a.waiting = append(a.waiting, bytes.Clone(b))
	return nil
}

// SendBatch implements [endpoint.PacketSocket].
func (s *socket) SendBatch(batch []endpoint.Datagram) (sent int, err error) {
	for _, d := range batch {
		switch e := s.Send(d.To, d.Data); {
		case e == nil:
			sent++
		case err == nil:
			err = e
		}
	}
	return sent, err
}

// begin makes an association and starts its handshake. s.mu is held.
func (s *socket) begin(peer netip.AddrPort) (*association, error) {
	if len(s.peers) >= s.cfg.MaxPeers || s.shakes >= s.cfg.MaxHandshakes {
		s.refused.Add(1)
		return nil, ErrTooManyPeers
	}
	a := &association{s: s, wire: newWire(s.u, peer), shaking: true}
	a.touch()
	conn, err := s.open(a.wire)
	if err != nil {
		return nil, err
	}
	a.conn = conn
	s.shakes++
	s.work.Go(func() { a.run(s.ctx) })
	return a, nil
}

// receive sorts what comes by peer.
func (s *socket) receive(from netip.AddrPort, b []byte) {
	s.mu.RLock()
	a, next := s.peers[from], s.next[from]
	fresh := a == nil || a.ready && next == nil
	s.mu.RUnlock()
	if fresh && !s.client && beginsHandshake(b) {
		if next = s.accept(from); a == nil {
			a, next = next, nil
		}
	}
	plain := false
	if e, ok := epoch(b); ok {
		plain = e == 0
	}
	taken := false
	// A peer that begins anew gets a second association. Until that is established
	// the first one stays: who only pretends to be the peer does not come so far.
	if next != nil {
		taken = next.put(b)
	}
	if a != nil && (next == nil || !plain) {
		taken = a.put(b) || taken
	}
	if !taken {
		s.ignored.Add(1)
	}
}

// accept begins with a client.
func (s *socket) accept(from netip.AddrPort) *association {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	a, err := s.begin(from)
	switch {
	case err != nil:
		return nil
	case s.peers[from] == nil:
		s.peers[from] = a
	default:
		s.next[from] = a
	}
	return a
}

// established puts an association to use, in place of an older one with the peer.
// It reports whether there is still need for it.
func (s *socket) established(a *association) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shaken(a)
	peer := a.wire.peer
	if s.next[peer] == a {
		delete(s.next, peer)
		if old := s.peers[peer]; old != nil {
			old.end()
		}
		s.peers[peer] = a
	}
	if s.closed || s.peers[peer] != a {
		return false
	}
	s.succeeded.Add(1)
	return a.begin() == nil
}

// forget removes an association that has ended.
func (s *socket) forget(a *association) {
	s.mu.Lock()
	defer s.mu.Unlock()
	peer := a.wire.peer
	s.shaken(a)
	s.lost.Add(uint64(len(a.waiting)))
	if s.next[peer] == a {
		delete(s.next, peer)
	}
	if s.peers[peer] != a {
		return
	}
	delete(s.peers, peer)
	if next := s.next[peer]; next != nil { // it said good-bye after it had begun anew
		s.peers[peer] = next
		delete(s.next, peer)
	}
}

// shaken takes a handshake that has ended off the count. s.mu is held.
func (s *socket) shaken(a *association) {
	if a.shaking {
		a.shaking = false
		s.shakes--
	}
}

// expire forgets peers that were silent for long.
func (s *socket) expire() {
	t := time.NewTicker(max(s.cfg.IdleTimeout/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-t.C:
			s.end(func(a *association) bool {
				return a.ready && now.Sub(time.Unix(0, a.used.Load())) > s.cfg.IdleTimeout
			})
		}
	}
}

// end ends some associations.
func (s *socket) end(which func(*association) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for peer, a := range s.peers {
		if which(a) {
			delete(s.peers, peer)
			a.end()
		}
	}
}

// AbortFrom implements [Socket].
func (s *socket) AbortFrom(host netip.Addr) {
	s.end(func(a *association) bool { return a.at(host) })
}

// Stats implements [Socket].
func (s *socket) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return Stats{
		Peers:       len(s.peers),
		Established: s.succeeded.Load(),
		Failed:      s.failed.Load(),
		Refused:     s.refused.Load(),
		Ignored:     s.ignored.Load(),
		Lost:        s.lost.Load(),
	}
}

// Close implements [endpoint.PacketSocket]. It tells the peers.
func (s *socket) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.end(func(*association) bool { return true })
	s.mu.Lock()
	for _, a := range s.next {
		a.end()
	}
	s.mu.Unlock()
	s.work.Wait() // while the socket still sends their good-byes
	return s.u.Close()
}
