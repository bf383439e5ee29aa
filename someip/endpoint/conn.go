package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Errors of a TCP connection besides those of its stream.
var (
	// ErrQueueFull: the peer reads too slowly; the message was not sent.
	ErrQueueFull = errors.New("endpoint: send queue full")
)

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
	socket        net.Conn
	tcp           *net.TCPConn // socket, if it is the system's
	stream        net.Conn     // socket, or what protects it
	local, remote netip.AddrPort
	cfg           TCPConfig
	from          Direction
	serve         sync.WaitGroup
	out           sendQueue
	done          chan struct{} // closed with the connection
	read          chan struct{} // closed when Run has ended

	mu      sync.Mutex
	running bool // Run was called
	closed  bool
	cause   error
}

// DialTCP connects to a server, from local if that is valid. The context bounds
// the dial only, and the handshake of a [StreamLayer].
func DialTCP(ctx context.Context, local, remote netip.AddrPort, cfg TCPConfig) (*Conn, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Marking.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	var tcp net.Conn
	dial := func(local netip.AddrPort) (err error) {
		if cfg.Streams != nil {
			tcp, err = cfg.Streams.Dial(ctx, local, remote)
			return err
		}
		d := net.Dialer{
			KeepAliveConfig: keepAlive,
			Control:         controlTCP(remote.Addr(), cfg, local.Port() != 0),
		}
		if local.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(numbered(local))
		}
		tcp, err = d.DialContext(ctx, "tcp", numbered(remote).String())
		if local.Port() != 0 && isSyscall(err, "connect", syscall.EADDRNOTAVAIL) {
			return fmt.Errorf("%w: a connection from %v to %v exists", syscall.EADDRINUSE, local, remote)
		}
		return err
	}
	ports := cfg.Ports
	if !local.IsValid() {
		ports = PortRange{}
	}
	if err := ports.bind("tcp", local, dial); err != nil {
		return nil, err
	}
	c := newConn(tcp, cfg, FromServer)
	if cfg.Layer != nil {
		if err := c.protect(ctx, func(ctx context.Context, s net.Conn) (net.Conn, error) {
			return cfg.Layer.Client(ctx, s, remote)
		}); err != nil {
			c.shut(err)
			return nil, err
		}
	}
	return c, nil
}

// keepAlive notices a peer that vanished within four seconds (TCP-7).
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// newConn takes over a connection on which the peer writes as from. TCP_NODELAY
// is what net sets (TCP-1).
func newConn(c net.Conn, cfg TCPConfig, from Direction) *Conn {
	conn := &Conn{
		socket: c,
		stream: c,
		local:  Canonical(c.LocalAddr().(*net.TCPAddr).AddrPort(), ""),
		remote: Canonical(c.RemoteAddr().(*net.TCPAddr).AddrPort(), ""),
		cfg:    cfg,
		from:   from,
		done:   make(chan struct{}),
		read:   make(chan struct{}),
	}
	conn.tcp, _ = c.(*net.TCPConn)
	conn.out.init(conn)
	return conn
}

// protect puts a layer between the connection and its messages. Nothing else uses
// the connection yet, but it may be closed meanwhile.
func (c *Conn) protect(ctx context.Context, shake func(context.Context, net.Conn) (net.Conn, error)) error {
	s, err := shake(ctx, c.socket)
	switch {
	case err == nil:
	case c.ended(): // by us: the peer is not to blame
		return net.ErrClosed
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("endpoint: %w", ctx.Err())
	default:
		return &HandshakeError{Peer: c.remote, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = s
	if c.closed {
		return net.ErrClosed
	}
	return nil
}

// layered reports whether writing may block.
func (c *Conn) layered() bool { return c.cfg.Layer != nil || c.tcp == nil }

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
	c.begin()
	c.serve.Go(func() { c.receive(h) })
}

// Run receives on the calling goroutine until the connection has ended.
func (c *Conn) Run(h ConnHandler) {
	c.begin()
	c.receive(h)
}

func (c *Conn) begin() {
	c.mu.Lock()
	c.running = true
	c.mu.Unlock()
}

func (c *Conn) receive(h ConnHandler) {
	defer close(c.read)
	f := Framer{From: c.from, MaxMessage: c.cfg.MaxMessage, Cookies: c.cfg.Cookies}
	err := c.messages(&f, h)
	c.shut(err)
	h.Closed(c, c.closeCause())
}

func (c *Conn) messages(f *Framer, h ConnHandler) error {
	for {
		n, err := c.stream.Read(f.Space())
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
	close(c.done)
	c.out.stop()
	if c.stream == c.socket {
		c.socket.Close()
		return
	}
	c.serve.Go(func() { c.stream.Close() }) // it says good-bye, which may block
}

// ended reports whether the connection was closed.
func (c *Conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *Conn) closeCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Abort closes the connection without waiting for its goroutines; they end on
// their own. Unlike Close it may be called from a handler.
func (c *Conn) Abort() { c.shut(nil) }

// Close closes the connection, whatever waits to be sent, and waits until its
// goroutines have ended.
func (c *Conn) Close() error {
	c.shut(nil)
	c.serve.Wait()
	c.out.wait()
	return nil
}

// Shutdown closes the connection in order: it takes no more messages, writes what
// is queued, tells the peer that nothing follows, and receives until the peer ends
// too. What is not done when ctx ends is given up, and its error returned (case
// 19). In any case the connection is closed as by Close.
func (c *Conn) Shutdown(ctx context.Context) error {
	err := c.finish(ctx)
	c.Close()
	return err
}

func (c *Conn) finish(ctx context.Context) error {
	if err := c.await(ctx, c.out.finish()); err != nil || c.ended() {
		return err
	}
	if half, ok := c.stream.(interface{ CloseWrite() error }); ok {
		_ = c.socket.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout))
		if err := half.CloseWrite(); err != nil {
			return fmt.Errorf("endpoint: %w", err)
		}
	}
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if !running {
		return nil
	}
	return c.await(ctx, c.read)
}

// await waits for ch, the end of the connection or that of ctx.
func (c *Conn) await(ctx context.Context, ch <-chan struct{}) error {
	select {
	case <-ch:
	case <-c.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
