package secure

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"

	"carisma.dev/gateway/someip/endpoint"
)

// maxWaiting bounds the datagrams that wait for the handshake with a peer.
const maxWaiting = 64

// association is what we share with one peer, or try to.
type association struct {
	s    *socket
	wire *wire
	conn *dtls.Conn
	used atomic.Int64 // when something was sent or received, in Unix nanoseconds

	// guarded by s.mu
	shaking bool // it counts as a handshake under way
	ready   bool
	waiting [][]byte // to send
	early   [][]byte // received
}

func (a *association) touch() { a.used.Store(time.Now().UnixNano()) }

// run does the handshake and receives until the association ends.
func (a *association) run(ctx context.Context) {
	err := a.handshake(ctx)
	if err != nil {
		a.s.failed.Add(1)
		a.s.cfg.Logger.Warn("dtls.handshake", "peer", a.wire.peer, "error", err)
		if a.s.told != nil && ctx.Err() == nil {
			defer a.s.told.HandshakeFailed(&endpoint.HandshakeError{Peer: a.wire.peer, Err: err})
		}
	} else if a.s.established(a) {
		a.receive()
	}
	a.s.forget(a)
	a.conn.Close()
	a.wire.Close()
}

func (a *association) handshake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.s.cfg.HandshakeTimeout)
	defer cancel()
	return a.conn.HandshakeContext(ctx)
}

func (a *association) receive() {
	buf := make([]byte, 1<<14) // the most that a record holds
	for {
		n, err := a.conn.Read(buf)
		if err != nil {
			return
		}
		a.touch()
		a.s.deliver(a.wire.peer, buf[:n])
	}
}

// put takes what was received from the peer, and reports whether there is room.
//
// Who ends a handshake may send data before the other is done with it. They are
// kept until then, for the library keeps only one.
func (a *association) put(b []byte) bool {
	if len(b) > 0 && b[0] == contentApplication && !a.isReady() {
		a.s.mu.Lock()
		defer a.s.mu.Unlock()
		if !a.ready {
			if len(a.early) >= maxWaiting {
				return false
			}
			a.early = append(a.early, bytes.Clone(b))
			return true
		}
	}
	return a.wire.put(b)
}

func (a *association) isReady() bool {
	a.s.mu.RLock()
	defer a.s.mu.RUnlock()
	return a.ready
}

// begin sends and receives what waited for the handshake. s.mu is held, so that
// nothing overtakes it.
func (a *association) begin() error {
	a.ready = true
	for _, b := range a.early {
		a.wire.put(b)
	}
	a.early = nil
	return a.flush()
}

// flush sends what waited. s.mu is held.
func (a *association) flush() error {
	for _, b := range a.waiting {
		if err := a.send(b); err != nil {
			return err
		}
	}
	a.waiting = nil
	return nil
}

// send writes one datagram.
func (a *association) send(b []byte) error {
	a.touch()
	_, err := a.conn.Write(b)
	return err
}

// end closes the association; its goroutine ends on its own.
func (a *association) end() {
	a.s.work.Go(func() { a.conn.Close() })
	a.wire.Close()
}

// Errors of a DTLS socket.
var (
	// ErrNotConnected says that a peer has not begun with us, and that as a server
	// we do not begin.
	ErrNotConnected = errors.New("secure: no DTLS association with this peer")
	// ErrQueueFull says that too much waits for the handshake with a peer.
	ErrQueueFull = errors.New("secure: too many datagrams wait for a handshake")
	// ErrTooManyPeers says that a limit of the [Config] is reached.
	ErrTooManyPeers = errors.New("secure: too many DTLS peers")
)

// at reports whether the peer is at that address.
func (a *association) at(host netip.Addr) bool { return a.wire.peer.Addr() == host }
