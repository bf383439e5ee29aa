package someiptest

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

var _ endpoint.Streams = (*Ether)(nil)

// Listen implements [endpoint.Streams].
func (e *Ether) Listen(local netip.AddrPort) (net.Listener, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for local.Port() == 0 {
		if at := netip.AddrPortFrom(local.Addr(), e.nextPort()); e.servers[at] == nil {
			local = at
		}
	}
	if e.servers[local] != nil {
		return nil, &endpoint.InUseError{Network: "tcp", Addr: local, Err: syscall.EADDRINUSE}
	}
	l := &etherListener{e: e, at: local, calls: make(chan net.Conn, backlog), closed: make(chan struct{})}
	e.servers[local] = l
	return l, nil
}

// backlog is how many connections may wait to be accepted.
const backlog = 128

// Dial implements [endpoint.Streams].
func (e *Ether) Dial(_ context.Context, local, remote netip.AddrPort) (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if local.Port() == 0 {
		local = netip.AddrPortFrom(local.Addr(), e.nextPort())
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(remote), Err: syscall.ECONNREFUSED}
	l := e.servers[remote]
	if l == nil {
		return nil, refused
	}
	there, back := newHalf(), newHalf()
	select {
	case l.calls <- &etherStream{in: there, out: back, local: remote, remote: local}:
		return &etherStream{in: back, out: there, local: local, remote: remote}, nil
	default:
		return nil, refused
	}
}

// etherListener is a server socket.
type etherListener struct {
	e      *Ether
	at     netip.AddrPort
	calls  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *etherListener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *etherListener) Close() error {
	l.once.Do(func() {
		l.e.mu.Lock()
		delete(l.e.servers, l.at)
		l.e.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.calls:
				c.Close()
			default: // none, or Accept had the last
				return
			}
		}
	})
	return nil
}

func (l *etherListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }

// etherStream is one end of a connection.
type etherStream struct {
	in, out       *half
	local, remote netip.AddrPort
}

func (s *etherStream) Read(b []byte) (int, error)  { return s.in.read(b) }
func (s *etherStream) Write(b []byte) (int, error) { return s.out.write(b) }
func (s *etherStream) LocalAddr() net.Addr         { return net.TCPAddrFromAddrPort(s.local) }
func (s *etherStream) RemoteAddr() net.Addr        { return net.TCPAddrFromAddrPort(s.remote) }

// CloseWrite tells the peer that nothing follows.
func (s *etherStream) CloseWrite() error {
	s.out.end(io.EOF, net.ErrClosed)
	return nil
}

// Close implements [net.Conn]: what is on its way arrives, what still comes is lost.
func (s *etherStream) Close() error {
	s.out.end(io.EOF, net.ErrClosed)
	s.in.end(net.ErrClosed, syscall.ECONNRESET)
	s.in.drop()
	return nil
}

func (s *etherStream) SetDeadline(t time.Time) error {
	s.in.reads.set(s.in, t)
	s.out.writes.set(s.out, t)
	return nil
}

func (s *etherStream) SetReadDeadline(t time.Time) error {
	s.in.reads.set(s.in, t)
	return nil
}

func (s *etherStream) SetWriteDeadline(t time.Time) error {
	s.out.writes.set(s.out, t)
	return nil
}

// inFlight is how many bytes a direction takes before its writer waits.
const inFlight = 256 << 10

// half is one direction of a connection.
type half struct {
	mu            sync.Mutex
	changed       *sync.Cond
	data          []byte
	readErr       error // once the data are read; nil: more may come
	writeErr      error // nil: more may be written
	reads, writes deadline
}

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.data) == 0 && h.readErr == nil && !h.reads.over {
		h.changed.Wait()
	}
	switch {
	case h.reads.over:
		return 0, os.ErrDeadlineExceeded
	case len(h.data) == 0:
		return 0, h.readErr
	}
	n := copy(b, h.data)
	h.data = h.data[n:]
	h.changed.Broadcast()
	return n, nil
}

func (h *half) write(b []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writes.over:
			return n, os.ErrDeadlineExceeded
		case h.writeErr != nil:
			return n, h.writeErr
		}
		part := b[n:min(len(b), n+inFlight-len(h.data))]
		h.data = append(h.data, part...)
		h.changed.Broadcast()
		if n += len(part); n == len(b) {
			return n, nil
		}
		h.changed.Wait()
	}
}

// end says what reading, behind what was written, and writing return; the first end
// counts.
func (h *half) end(read, write error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readErr == nil {
		h.readErr = read
	}
	if h.writeErr == nil {
		h.writeErr = write
	}
	h.changed.Broadcast()
}

// drop throws away what nobody will read.
func (h *half) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.data = nil
}

// deadline is that of one side; the mutex of its half guards it.
type deadline struct {
	timer *time.Timer
	over  bool
}

func (d *deadline) set(h *half, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.over = false
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d.timer == timer {
			d.over = true
			h.changed.Broadcast()
		}
	})
	d.timer = timer
}
