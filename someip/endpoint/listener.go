package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Listener is the server side of TCP: it accepts connections and keeps them
// until the client closes them or it is closed itself.
type Listener struct {
	ln    net.Listener
	local netip.AddrPort
	cfg   TCPConfig
	serve sync.WaitGroup

	accepted, refused, failed atomic.Uint64

	mu     sync.Mutex
	conns  map[netip.AddrPort]*Conn // by remote address, those in use
	all    map[*Conn]struct{}       // and those whose handshake goes on
	hosts  map[netip.Addr]int       // of all, by peer
	closed bool
	done   chan struct{} // closed with it
}

// ListenerStats counts connections since a listener was opened.
type ListenerStats struct {
	Accepted uint64 // given to the handler
	Refused  uint64 // beyond the limits of the [TCPConfig]
	Failed   uint64 // whose handshake did not succeed
}

// ListenTCP opens a server socket; port 0 takes one of cfg.Ports or lets the
// system choose. Errors are those of [ListenUDP].
func ListenTCP(local netip.AddrPort, cfg TCPConfig) (*Listener, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Marking.validate(); err != nil {
		return nil, err
	}
	var ln net.Listener
	err := cfg.Ports.bind("tcp", Canonical(local, ""), func(local netip.AddrPort) (err error) {
		if cfg.Streams != nil {
			ln, err = cfg.Streams.Listen(local)
			return err
		}
		lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: controlTCP(local.Addr(), cfg, false)}
		ln, err = lc.Listen(context.Background(), network4or6("tcp", local.Addr()), numbered(local).String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Listener{
		ln:    ln,
		local: Canonical(ln.Addr().(*net.TCPAddr).AddrPort(), ""),
		cfg:   cfg,
		conns: make(map[netip.AddrPort]*Conn),
		all:   make(map[*Conn]struct{}),
		hosts: make(map[netip.Addr]int),
		done:  make(chan struct{}),
	}, nil
}

// Stats returns a snapshot of the counters.
func (l *Listener) Stats() ListenerStats {
	return ListenerStats{Accepted: l.accepted.Load(), Refused: l.refused.Load(), Failed: l.failed.Load()}
}

// LocalAddr is the address the listener is bound to.
func (l *Listener) LocalAddr() netip.AddrPort { return l.local }

// An AcceptHandler gets what the connections of a listener receive.
type AcceptHandler interface {
	ConnHandler
	// Opened tells of a new connection, before its first message.
	Opened(c *Conn)
}

// Serve starts to accept: h gets the messages of every connection, each on the
// goroutine of its own. Call it once.
func (l *Listener) Serve(h AcceptHandler) {
	l.serve.Go(func() { l.accept(h) })
}

// Conn returns the open connection of a client, or nil (SUB-9).
func (l *Listener) Conn(remote netip.AddrPort) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[remote]
}

// Conns returns the number of open connections, handshakes included.
func (l *Listener) Conns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// AbortFrom closes the connections of a host without waiting (RB-6).
func (l *Listener) AbortFrom(host netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.all {
		if c.remote.Addr() == host {
			c.Abort()
		}
	}
}

func (l *Listener) accept(h AcceptHandler) {
	backoff := time.Millisecond
	for {
		c, err := l.ln.Accept()
		switch {
		case err == nil:
			backoff = time.Millisecond
			l.add(c, h)
		case errors.Is(err, net.ErrClosed):
			return
		default: // no descriptors, or a client that went before it was accepted
			if !l.pause(backoff) {
				return
			}
			backoff = min(2*backoff, time.Second)
		}
	}
}

// pause waits and reports whether the listener is still open.
func (l *Listener) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}

func (l *Listener) add(tcp net.Conn, h AcceptHandler) {
	c := newConn(tcp, l.cfg, FromClient)
	host := c.remote.Addr()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.all) >= l.cfg.MaxConns || l.hosts[host] >= l.cfg.MaxConnsOfHost {
		l.refused.Add(1)
		c.Abort()
		return
	}
	l.all[c] = struct{}{}
	l.hosts[host]++
	l.serve.Go(func() { l.run(c, h) })
}

// run serves one connection.
func (l *Listener) run(c *Conn, h AcceptHandler) {
	defer c.Close()
	if err := l.prepare(c); err != nil {
		l.failed.Add(1)
		c.shut(err)
		l.forget(c)
		var failed *HandshakeError
		if told, ok := h.(HandshakeHandler); ok && errors.As(err, &failed) {
			told.HandshakeFailed(failed)
		}
		return
	}
	l.accepted.Add(1)
	l.mu.Lock()
	l.conns[c.remote] = c
	l.mu.Unlock()
	h.Opened(c)
	c.Run(accepted{l, h})
}

func (l *Listener) prepare(c *Conn) error {
	if c.tcp != nil {
		if err := markAccepted(c.tcp, l.local.Addr(), l.cfg.Marking); err != nil {
			return err
		}
	}
	if l.cfg.Layer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.ConnectTimeout)
	defer cancel()
	return c.protect(ctx, l.cfg.Layer.Server)
}

// forget makes room for another connection.
func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	host := c.remote.Addr()
	delete(l.all, c)
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
	if l.conns[c.remote] == c {
		delete(l.conns, c.remote)
	}
}

// accepted removes a connection from its listener before its handler hears
// that it ended.
type accepted struct {
	l *Listener
	ConnHandler
}

func (a accepted) Closed(c *Conn, err error) {
	a.l.forget(c)
	a.ConnHandler.Closed(c, err)
}

// stop stops to accept and returns the connections; none if that was done before.
func (l *Listener) stop() (open []*Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil
	}
	l.closed = true
	close(l.done)
	for c := range l.all {
		open = append(open, c)
	}
	return open, l.ln.Close()
}

// Close stops to accept, closes the connections and waits until their
// goroutines have ended.
func (l *Listener) Close() error {
	open, err := l.stop()
	for _, c := range open {
		c.Abort()
	}
	l.serve.Wait()
	return err
}

// Shutdown stops to accept and ends the connections in order, all at once, as
// [Conn.Shutdown] does.
func (l *Listener) Shutdown(ctx context.Context) error {
	open, err := l.stop()
	for _, c := range open {
		l.serve.Go(func() {
			_ = c.Shutdown(ctx) // what was not sent in time is lost with the peer
		})
	}
	l.serve.Wait()
	return err
}
