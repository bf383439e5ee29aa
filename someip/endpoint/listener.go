package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Listener is the server side of TCP: it accepts connections and keeps them
// until the client closes them or it is closed itself.
type Listener struct {
	ln    *net.TCPListener
	local netip.AddrPort
	cfg   TCPConfig
	serve sync.WaitGroup

	mu     sync.Mutex
	conns  map[netip.AddrPort]*Conn // by remote address
	closed bool
	done   chan struct{} // closed with it
}

// ListenTCP opens a server socket; port 0 lets the system choose.
func ListenTCP(local netip.AddrPort, cfg TCPConfig) (*Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive, Control: controlTCP}
	ln, err := lc.Listen(context.Background(), "tcp", local.String())
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	tcp := ln.(*net.TCPListener)
	return &Listener{
		ln:    tcp,
		local: canonical(tcp.Addr().(*net.TCPAddr).AddrPort()),
		cfg:   cfg.withDefaults(),
		conns: make(map[netip.AddrPort]*Conn),
		done:  make(chan struct{}),
	}, nil
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

// Conns returns the number of open connections.
func (l *Listener) Conns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// AbortFrom closes the connections of a host without waiting (RB-6).
func (l *Listener) AbortFrom(host netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for remote, c := range l.conns {
		if remote.Addr() == host {
			c.Abort()
		}
	}
}

func (l *Listener) accept(h AcceptHandler) {
	backoff := time.Millisecond
	for {
		c, err := l.ln.AcceptTCP()
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

func (l *Listener) add(tcp *net.TCPConn, h AcceptHandler) {
	c := newConn(tcp, l.cfg, FromClient)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.conns) >= l.cfg.MaxConns {
		c.Abort()
		return
	}
	l.conns[c.remote] = c
	l.serve.Go(func() {
		h.Opened(c)
		c.Run(accepted{l, h})
		c.Close()
	})
}

// accepted removes a connection from its listener before its handler hears
// that it ended.
type accepted struct {
	l *Listener
	ConnHandler
}

func (a accepted) Closed(c *Conn, err error) {
	a.l.mu.Lock()
	if a.l.conns[c.remote] == c {
		delete(a.l.conns, c.remote)
	}
	a.l.mu.Unlock()
	a.ConnHandler.Closed(c, err)
}

// Close stops to accept, closes the connections and waits until their
// goroutines have ended.
func (l *Listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.serve.Wait()
		return nil
	}
	l.closed = true
	close(l.done)
	open := make([]*Conn, 0, len(l.conns))
	for _, c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	err := l.ln.Close()
	for _, c := range open {
		c.Close()
	}
	l.serve.Wait()
	return err
}
