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

// Errors of a TCP connection besides those of its stream.
var (
	// ErrQueueFull: the peer reads too slowly; the message was not sent.
	ErrQueueFull = errors.New("endpoint: send queue full")
)

// Defaults of a [TCPConfig].
const (
	DefaultWriteTimeout   = 3 * time.Second
	DefaultConnectTimeout = 5 * time.Second
	DefaultSendQueue      = 1 << 20
	DefaultMaxConns       = 256
)

// TCPConfig describes TCP connections. Zero values stand for the defaults.
type TCPConfig struct {
	MaxMessage     int           // longest message accepted, in bytes
	WriteTimeout   time.Duration // how long a peer may leave the send queue standing (case 19)
	ConnectTimeout time.Duration // bound of DialTCP (TCP-7)
	SendQueue      int           // bytes that wait for a slow peer; one message may exceed it alone
	Cookies        bool          // send magic cookies
	MaxConns       int           // connections of a listener at one time
}

func (c TCPConfig) withDefaults() TCPConfig {
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.SendQueue == 0 {
		c.SendQueue = DefaultSendQueue
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	return c
}

// A ConnHandler gets what a connection receives.
type ConnHandler interface {
	// Message gets one whole message, valid until it returns.
	Message(c *Conn, msg []byte)
	// Closed tells that the connection ended, and why: nil if by Close here,
	// io.EOF if by the peer.
	Closed(c *Conn, err error)
}

// Conn is a TCP connection that carries SOME/IP messages. Its methods are safe
// for concurrent use.
type Conn struct {
	conn          *net.TCPConn
	local, remote netip.AddrPort
	cfg           TCPConfig
	from          Direction
	serve         sync.WaitGroup
	out           sendQueue

	mu     sync.Mutex
	closed bool
	cause  error
}

// DialTCP connects to a server, from local if that is valid. The context bounds
// the dial only.
func DialTCP(ctx context.Context, local, remote netip.AddrPort, cfg TCPConfig) (*Conn, error) {
	cfg = cfg.withDefaults()
	d := net.Dialer{Timeout: cfg.ConnectTimeout, KeepAliveConfig: keepAlive, Control: controlTCP}
	if local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(local)
	}
	c, err := d.DialContext(ctx, "tcp", remote.String())
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return newConn(c.(*net.TCPConn), cfg, FromServer), nil
}

// keepAlive notices a peer that vanished within four seconds (TCP-7).
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// newConn takes over a connection on which the peer writes as from. TCP_NODELAY
// is what net sets (TCP-1).
func newConn(c *net.TCPConn, cfg TCPConfig, from Direction) *Conn {
	conn := &Conn{
		conn:   c,
		local:  canonical(c.LocalAddr().(*net.TCPAddr).AddrPort()),
		remote: canonical(c.RemoteAddr().(*net.TCPAddr).AddrPort()),
		cfg:    cfg,
		from:   from,
	}
	conn.out.init(conn)
	return conn
}

// LocalAddr is the own end.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// RemoteAddr is the peer's end.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// Send hands one message over without waiting for the peer: what the kernel does
// not take at once is queued and written behind. [ErrQueueFull] says that the
// queue has no room, net.ErrClosed that the connection has ended. It does not
// keep msg.
func (c *Conn) Send(msg []byte) error { return c.out.send(msg) }

// Serve starts to receive: h gets each message, on one goroutine, and at last
// Closed. Call either Serve or Run, once.
func (c *Conn) Serve(h ConnHandler) {
	c.serve.Go(func() { c.Run(h) })
}

// Run receives on the calling goroutine until the connection has ended.
func (c *Conn) Run(h ConnHandler) {
	f := Framer{From: c.from, MaxMessage: c.cfg.MaxMessage, Cookies: c.cfg.Cookies}
	err := c.read(&f, h)
	c.shut(err)
	h.Closed(c, c.closeCause())
}

func (c *Conn) read(f *Framer, h ConnHandler) error {
	for {
		n, err := c.conn.Read(f.Space())
		f.Received(n)
		for {
			msg, ferr := f.Next()
			if ferr != nil {
				return ferr
			}
			if msg == nil {
				break
			}
			h.Message(c, msg)
		}
		if err != nil {
			return err
		}
	}
}

// shut closes the socket; the first cause counts.
func (c *Conn) shut(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed, c.cause = true, cause
	c.out.stop()
	c.conn.Close()
}

func (c *Conn) closeCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Abort closes the connection without waiting for its goroutines; they end on
// their own. Unlike Close it may be called from a handler.
func (c *Conn) Abort() { c.shut(nil) }

// Close closes the connection and waits until its goroutines have ended.
func (c *Conn) Close() error {
	c.shut(nil)
	c.serve.Wait()
	c.out.wait()
	return nil
}
