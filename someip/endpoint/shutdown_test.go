package endpoint_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// What was sent before arrives, however slow the peer is, and nothing after.
func TestShutdownInOrder(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{SendQueue: 64 << 20, WriteTimeout: patience})
	peer := raw(t, l)
	s := receive(t, atServer.opened)
	const n = 200
	msg := message(string(make([]byte, 100<<10)))
	for range n { // more than the kernel takes
		require.NoError(t, s.Send(msg))
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	got, err := io.Copy(io.Discard, peer)
	require.NoError(t, err)
	require.EqualValues(t, n*len(msg), got)
	peer.Close()
	require.NoError(t, receive(t, done))
	require.ErrorIs(t, receive(t, atServer.closed), io.EOF)
	require.ErrorIs(t, s.Send(msg), net.ErrClosed)
}

// Answers that are under way when we end reach a peer that still sends: a plain
// close with unread data would reset the connection and lose them.
func TestShutdownReceivesUntilThePeerEnds(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	peer := raw(t, l)
	s := receive(t, atServer.opened)
	require.NoError(t, s.Send(message("answer")))
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	_, err := peer.Write(message("late"))
	require.NoError(t, err)
	require.Equal(t, message("late"), receive(t, atServer.msgs))
	got, err := io.ReadAll(io.LimitReader(peer, int64(len(message("answer")))))
	require.NoError(t, err)
	require.Equal(t, message("answer"), got)
	peer.Close()
	require.NoError(t, receive(t, done))
}

// Case 19: a peer that stops reading does not hold up the end.
func TestShutdownIsBounded(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{SendQueue: 64 << 20, WriteTimeout: time.Hour})
	raw(t, l)
	s := receive(t, atServer.opened)
	msg := message(string(make([]byte, 1<<20)))
	for range 16 { // more than the buffers of both sides
		require.NoError(t, s.Send(msg))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
	require.NoError(t, receive(t, atServer.closed))
	require.NoError(t, s.Shutdown(context.Background()), "again does no harm")
}

func TestListenerShutdown(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	for range 3 {
		c, _ := dial(t, l, endpoint.TCPConfig{})
		require.NoError(t, c.Send(message("x")))
		receive(t, atServer.msgs)
	}
	silent := raw(t, l)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, l.Shutdown(ctx))
	require.Zero(t, l.Conns())
	_, err := silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), l.LocalAddr(), endpoint.TCPConfig{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestLimitOfConnectionsOfAHost(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{MaxConns: 3, MaxConnsOfHost: 2})
	from := func(host string) net.Conn {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(addr(host + ":0"))}
		c, err := d.Dial("tcp", l.LocalAddr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		return c
	}
	refused := func(c net.Conn) {
		t.Helper()
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, syscall.EAGAIN)
	}
	first := from("127.0.11.7")
	receive(t, atServer.opened)
	from("127.0.11.7")
	receive(t, atServer.opened)
	refused(from("127.0.11.7"))
	from("127.0.11.8")
	receive(t, atServer.opened)
	refused(from("127.0.11.9")) // in all
	first.Close()
	receive(t, atServer.closed)
	from("127.0.11.7")
	receive(t, atServer.opened)
	require.Equal(t, endpoint.ListenerStats{Accepted: 4, Refused: 2}, l.Stats())
}

// CK-4: what waited for a slow peer is led by cookies too, between whole messages.
func TestCookiesInTheQueue(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{SendQueue: 64 << 20, WriteTimeout: patience, Cookies: true})
	peer := raw(t, l)
	s := receive(t, atServer.opened)
	const n = 200
	msg := message(string(make([]byte, 100<<10)))
	for range n {
		require.NoError(t, s.Send(msg))
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	stream, err := io.ReadAll(peer)
	require.NoError(t, err)
	peer.Close()
	require.NoError(t, receive(t, done))
	f := &endpoint.Framer{From: endpoint.FromServer}
	got, err := feed(f, stream, 64<<10)
	require.NoError(t, err)
	require.Len(t, got, n)
	require.Zero(t, f.Skipped)
	cookies := (len(stream) - n*len(msg)) / someip.HeaderSize
	require.Greater(t, cookies, 1)
	require.LessOrEqual(t, cookies, n)
	require.Equal(t, cookies, bytes.Count(stream, []byte(someip.ServerCookie)))
}
