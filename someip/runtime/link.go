package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

// link is the one TCP connection to a server endpoint, shared by all that use
// services there (TCP-2). It is opened when first needed, by a call or because
// service discovery wants it for a subscription, and again after it was lost
// (TCP-3).
type link struct {
	n      *Network
	remote netip.AddrPort
	layer  endpoint.StreamLayer          // nil: unprotected
	conn   atomic.Pointer[endpoint.Conn] // nil: not connected
	ctx    context.Context               //nolint:containedctx // bounds the dials, whoever asked for them
	cancel context.CancelFunc

	refs int // remotes at this endpoint; guarded by n.mu

	mu      sync.Mutex
	attempt *attempt // the dial that is under way
	fails   int      // in a row
	failure error    // the last one
	closed  bool
}

// attempt is one dial; conn or err hold once done is closed.
type attempt struct {
	done chan struct{}
	conn *endpoint.Conn
	err  error

	pause  time.Duration // before it, so that a server that refuses is not hurried
	paused chan struct{} // closed when that is over
	before error         // why the last attempt failed
}

// dialError says that a server could not be connected to.
type dialError struct {
	since time.Time
	err   error
}

func (e *dialError) Error() string { return fmt.Sprintf("runtime: connect: %v", e.err) }
func (e *dialError) Unwrap() error { return e.err }

func newLink(n *Network, remote netip.AddrPort, layer endpoint.StreamLayer) *link {
	l := &link{n: n, remote: remote, layer: layer}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// get returns the connection, after connecting if need be. While the next attempt
// is put off it fails as the last one did.
func (l *link) get(ctx context.Context) (*endpoint.Conn, error) {
	if c := l.conn.Load(); c != nil {
		return c, nil
	}
	a, err := l.dial()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.paused:
	default:
		return nil, a.before
	}
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dial starts an attempt or joins the one under way.
func (l *link) dial() (*attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	if l.attempt != nil {
		return l.attempt, nil
	}
	a := &attempt{done: make(chan struct{}), paused: make(chan struct{}), before: l.failure}
	if l.fails < 2 { // the first time again is at once
		close(a.paused)
	} else {
		a.pause, _ = endpoint.Backoff{}.Delay(l.fails-1, rand.Float64())
	}
	if c := l.conn.Load(); c != nil {
		a.conn = c
		close(a.done)
		return a, nil
	}
	l.attempt = a
	l.n.work.Go(func() { l.run(a) })
	return a, nil
}

// run connects, then receives until the connection ends.
func (l *link) run(a *attempt) {
	if a.pause > 0 {
		t := time.NewTimer(a.pause)
		select {
		case <-t.C:
		case <-l.ctx.Done():
			t.Stop()
		}
		close(a.paused)
	}
	c := l.connect(a)
	close(a.done)
	if c == nil {
		l.n.linkDown(l, nil, nil)
		return
	}
	begin := time.Now()
	l.n.linkUp(l, c)
	h := &clientConn{link: l}
	c.Run(h)
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(begin) > endpoint.DefaultBackoffMax {
		l.fails = 0 // it worked for a while
		return
	}
	l.fails++
	l.failure = &dialError{since: begin, err: errShortLived}
	if h.err != nil { // with TLS 1.3 it is here that a client learns that it is refused
		l.failure = &dialError{since: begin, err: fmt.Errorf("%w: %w", errShortLived, h.err)}
	}
}

// errShortLived says that connections end as soon as they are there.
var errShortLived = errors.New("it was closed at once")

func (l *link) connect(a *attempt) *endpoint.Conn {
	cfg := l.n.tcpConfig()
	cfg.Layer = l.layer
	c, err := endpoint.DialTCP(l.ctx, l.n.own(0), l.remote, cfg)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt = nil
	switch {
	case err != nil:
		l.n.stats.connections.Add(1)
		if refused := new(endpoint.HandshakeError); errors.As(err, &refused) {
			l.n.handshakeFailed(refused)
		}
		a.err = &dialError{since: l.n.now(), err: err}
		l.fails++
		l.failure = a.err
		return nil
	case l.closed:
		c.Close()
		a.err = ErrClosed
		return nil
	}
	l.conn.Store(c)
	a.conn = c
	return c
}

// close ends the connection; what waits for it fails.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	c := l.conn.Swap(nil)
	l.mu.Unlock()
	l.cancel()
	if c != nil {
		c.Abort()
	}
}

// clientConn handles what comes over a link.
type clientConn struct {
	*link
	err error // why it ended
}

// Message implements [endpoint.ConnHandler].
func (h *clientConn) Message(c *endpoint.Conn, msg []byte) {
	h.n.receiveClient(arrival{by: overTCP, from: c.RemoteAddr(), to: c.LocalAddr(), conn: c}, msg)
}

// Closed implements [endpoint.ConnHandler].
func (h *clientConn) Closed(c *endpoint.Conn, err error) {
	h.err = err
	h.conn.CompareAndSwap(c, nil)
	if err != nil {
		h.n.stats.connections.Add(1)
	}
	h.n.linkDown(h.link, c, err)
}
