package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// recorder is a handler that keeps what it hears.
type recorder struct {
	opened chan *endpoint.Conn
	msgs   chan []byte
	closed chan error
	reply  bool // send each message back
}

func newRecorder() *recorder {
	return &recorder{make(chan *endpoint.Conn, 16), make(chan []byte, 1024), make(chan error, 16), false}
}

func (r *recorder) Opened(c *endpoint.Conn) { r.opened <- c }
func (r *recorder) Message(c *endpoint.Conn, m []byte) {
	if r.reply {
		_ = c.Send(m)
		return
	}
	r.msgs <- bytes.Clone(m)
}
func (r *recorder) Closed(_ *endpoint.Conn, err error) { r.closed <- err }

func server(t *testing.T, cfg endpoint.TCPConfig) (*endpoint.Listener, *recorder) {
	t.Helper()
	l, err := endpoint.ListenTCP(addr("127.0.11.1:0"), cfg)
	require.NoError(t, err)
	r := newRecorder()
	l.Serve(r)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, r
}

func dial(t *testing.T, l *endpoint.Listener, cfg endpoint.TCPConfig) (*endpoint.Conn, *recorder) {
	t.Helper()
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), l.LocalAddr(), cfg)
	require.NoError(t, err)
	r := newRecorder()
	c.Serve(r)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, r
}

// raw connects without our framing.
func raw(t *testing.T, l *endpoint.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.LocalAddr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

func TestTCPBothWays(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	c, atClient := dial(t, l, endpoint.TCPConfig{})
	s := receive(t, atServer.opened)
	require.Equal(t, c.LocalAddr(), s.RemoteAddr())
	require.Same(t, s, l.Conn(c.LocalAddr()))

	big := message(string(make([]byte, 3<<20)))
	require.NoError(t, c.Send(message("one")))
	require.NoError(t, c.Send(message("two")))
	require.Equal(t, message("one"), receive(t, atServer.msgs))
	require.Equal(t, message("two"), receive(t, atServer.msgs))
	require.NoError(t, s.Send(big), "larger than the queue, but alone")
	require.NoError(t, c.Send(message("three")))
	require.Equal(t, big, receive(t, atClient.msgs))

	require.NoError(t, c.Close())
	require.NoError(t, receive(t, atClient.closed), "closed here")
	require.ErrorIs(t, receive(t, atServer.closed), io.EOF)
	require.Zero(t, l.Conns())
	require.ErrorIs(t, c.Send(message("x")), net.ErrClosed)
}

func TestTCPSeveralMessagesASegmentAndCookies(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	c := raw(t, l)
	_, err := c.Write(bytes.Join([][]byte{
		[]byte(someip.ClientCookie), message("a"), message("bc"), []byte(someip.ClientCookie), message("")[:10],
	}, nil))
	require.NoError(t, err)
	require.Equal(t, message("a"), receive(t, atServer.msgs))
	require.Equal(t, message("bc"), receive(t, atServer.msgs))
	_, err = c.Write(message("")[10:])
	require.NoError(t, err)
	require.Equal(t, message(""), receive(t, atServer.msgs))
}

// Each write to the kernel begins with a cookie, in the same segment as its
// message; what waits in the queue has one for all.
func TestTCPSendsCookies(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.11.1:0")
	require.NoError(t, err)
	defer ln.Close()
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), ln.Addr().(*net.TCPAddr).AddrPort(), endpoint.TCPConfig{Cookies: true})
	require.NoError(t, err)
	defer c.Close()
	peer, err := ln.Accept()
	require.NoError(t, err)
	defer peer.Close()
	require.NoError(t, peer.SetDeadline(time.Now().Add(patience)))
	for _, m := range []string{"a", "b"} {
		require.NoError(t, c.Send(message(m)))
		want := append([]byte(someip.ClientCookie), message(m)...)
		got := make([]byte, 2*len(want))
		n, err := peer.Read(got)
		require.NoError(t, err)
		require.Equal(t, want, got[:n])
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = c.Send(message0) }))
}

var message0 = message("")

func TestTCPClosesOnLostFraming(t *testing.T) {
	for name, junk := range map[string][]byte{
		"case 2: Length 3": {0x12, 0x34, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 1, 1, 0, 0},
		"oversize":         {0x12, 0x34, 0, 1, 0xFF, 0, 0, 8, 0, 0, 0, 0, 1, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, atServer := server(t, endpoint.TCPConfig{})
			c := raw(t, l)
			_, err := c.Write(append(message("good"), junk...))
			require.NoError(t, err)
			require.Equal(t, message("good"), receive(t, atServer.msgs))
			cause := receive(t, atServer.closed)
			require.True(t, errors.Is(cause, endpoint.ErrFraming) || errors.Is(cause, endpoint.ErrOversize), "%v", cause)
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// A peer that stops reading costs the sender no time, then messages, then the
// connection (case 19).
func TestTCPSlowPeer(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{WriteTimeout: 100 * time.Millisecond, SendQueue: 1 << 20})
	raw(t, l)
	s := receive(t, atServer.opened)
	msg := message(string(make([]byte, 100<<10)))
	var err error
	for range 1000 {
		if err = s.Send(msg); err != nil {
			break
		}
	}
	if !errors.Is(err, net.ErrClosed) { // on a machine so loaded that the time is over already
		require.ErrorIs(t, err, endpoint.ErrQueueFull)
	}
	var timeout net.Error
	require.ErrorAs(t, receive(t, atServer.closed), &timeout)
	require.True(t, timeout.Timeout())
}

func TestTCPLimitsConnections(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{MaxConns: 1})
	first := raw(t, l)
	receive(t, atServer.opened)
	_, err := raw(t, l).Read(make([]byte, 1))
	require.Error(t, err)
	first.Close()
	receive(t, atServer.closed)
	raw(t, l)
	receive(t, atServer.opened)
}

func TestTCPDialFails(t *testing.T) {
	l, err := endpoint.ListenTCP(addr("127.0.11.1:0"), endpoint.TCPConfig{})
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "twice does no harm")
	_, err = endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), l.LocalAddr(), endpoint.TCPConfig{})
	require.Error(t, err)
}

func TestTCPAbortFromHost(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	c, atClient := dial(t, l, endpoint.TCPConfig{})
	receive(t, atServer.opened)
	l.AbortFrom(addr("127.0.11.9:0").Addr())
	require.NotNil(t, l.Conn(c.LocalAddr()))
	l.AbortFrom(c.LocalAddr().Addr())
	require.NoError(t, receive(t, atServer.closed))
	require.Error(t, receive(t, atClient.closed))
}

func BenchmarkTCPEcho(b *testing.B) {
	l, err := endpoint.ListenTCP(addr("127.0.11.1:0"), endpoint.TCPConfig{})
	require.NoError(b, err)
	defer l.Close()
	echo := newRecorder()
	echo.reply = true
	l.Serve(echo)
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), l.LocalAddr(), endpoint.TCPConfig{})
	require.NoError(b, err)
	defer c.Close()
	done := make(chan struct{}, 1)
	c.Serve(signal{done})
	msg := message("12345678")
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Send(msg)
		<-done
	}
}

type signal struct{ done chan struct{} }

func (s signal) Message(*endpoint.Conn, []byte) { s.done <- struct{}{} }
func (s signal) Closed(*endpoint.Conn, error)   {}
