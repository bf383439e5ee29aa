package secure_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/internal/authority"
)

func layer(t *testing.T, cfg secure.Config) endpoint.TCPConfig {
	t.Helper()
	l, err := secure.NewTLS(cfg)
	require.NoError(t, err)
	return endpoint.TCPConfig{Layer: l, ConnectTimeout: patience}
}

func listenTLS(t *testing.T, cfg endpoint.TCPConfig) (*endpoint.Listener, *recorder) {
	t.Helper()
	l, err := endpoint.ListenTCP(addr("127.0.11.61:0"), cfg)
	require.NoError(t, err)
	r := newRecorder()
	l.Serve(r)
	t.Cleanup(func() { l.Close() })
	return l, r
}

func TestTLSBothWays(t *testing.T) {
	ca := authority.New(t)
	l, atServer := listenTLS(t, layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.61"), Roots: ca.Pool()}))
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.62:0"), l.LocalAddr(),
		layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.62"), Roots: ca.Pool()}))
	require.NoError(t, err)
	atClient := newRecorder()
	c.Serve(atClient)
	s := receive(t, atServer.opened)
	require.Same(t, s, l.Conn(c.LocalAddr()))

	big := message(string(make([]byte, 3<<20)))
	require.NoError(t, c.Send(message("one")))
	require.Equal(t, message("one"), receive(t, atServer.msgs))
	require.NoError(t, s.Send(message("two")))
	require.Equal(t, message("two"), receive(t, atClient.msgs))

	// What has arrived may not have left the queue's account yet.
	require.Eventually(t, func() bool { return c.Send(big) == nil }, 10*time.Second, time.Millisecond)
	require.Equal(t, big, receive(t, atServer.msgs))
	require.NoError(t, c.Close())
	require.ErrorIs(t, receive(t, atServer.closed), io.EOF, "the end is announced")
	require.EqualValues(t, 1, l.Stats().Accepted)
}

func TestTLSRefuses(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	l, atServer := listenTLS(t, layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.61"), Roots: ca.Pool()}))
	dial := func(cfg secure.Config) error {
		c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.62:0"), l.LocalAddr(), layer(t, cfg))
		if err == nil { // with TLS 1.3 the client learns of a refusal when it reads
			r := newRecorder()
			c.Serve(r)
			err = receive(t, r.closed)
			c.Close()
		}
		return err
	}
	mine := ca.Of(t, "127.0.11.62")
	require.ErrorContains(t, dial(secure.Config{Certificate: mine, Roots: other.Pool()}), "unknown authority")
	require.ErrorContains(t, dial(secure.Config{Certificate: mine, Roots: ca.Pool(), ServerName: "127.0.11.99"}), "127.0.11.99")
	require.Error(t, dial(secure.Config{Roots: ca.Pool()}), "a client without certificate")
	require.Error(t, dial(secure.Config{Certificate: other.Of(t, "127.0.11.62"), Roots: ca.Pool()}))
	old, err := tls.Dial("tcp", l.LocalAddr().String(), &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true})
	if err == nil {
		old.Close()
	}
	require.ErrorContains(t, err, "protocol version")
	require.Eventually(t, func() bool { return l.Stats().Failed == 5 && l.Conns() == 0 }, patience, 5*time.Millisecond)
	require.Empty(t, atServer.opened, "the handler hears of none")
}

// A peer that connects and says nothing keeps its place for the handshake's time
// only, and the listener closes at once all the same.
func TestTLSSilentPeer(t *testing.T) {
	ca := authority.New(t)
	cfg := layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.61")})
	cfg.ConnectTimeout = 20 * time.Millisecond
	l, atServer := listenTLS(t, cfg)
	c, err := net.Dial("tcp", l.LocalAddr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, c.LocalAddr().String(), receive(t, atServer.failed).Peer.String())

	cfg.ConnectTimeout = time.Hour
	l, atServer = listenTLS(t, cfg)
	c2, err := net.Dial("tcp", l.LocalAddr().String())
	require.NoError(t, err)
	defer c2.Close()
	require.Eventually(t, func() bool { return l.Conns() == 1 }, patience, time.Millisecond)
	require.NoError(t, l.Close())
	require.Empty(t, atServer.failed, "the peer is not to blame")

	silent, err := net.Listen("tcp", "127.0.11.61:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = endpoint.DialTCP(ctx, addr("127.0.11.62:0"), addr(silent.Addr().String()), cfg)
	require.ErrorIs(t, err, context.Canceled)
	var refused *endpoint.HandshakeError
	require.False(t, errors.As(err, &refused), "nor is a server")
}

func TestTLSShutdownInOrder(t *testing.T) {
	ca := authority.New(t)
	l, atServer := listenTLS(t, layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.61")}))
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.62:0"), l.LocalAddr(), layer(t, secure.Config{Roots: ca.Pool()}))
	require.NoError(t, err)
	c.Serve(newRecorder())
	receive(t, atServer.opened)
	for range 100 {
		require.NoError(t, c.Send(message(string(make([]byte, 9000)))))
	}
	require.NoError(t, c.Shutdown(context.Background()))
	for range 100 {
		receive(t, atServer.msgs)
	}
	require.ErrorIs(t, receive(t, atServer.closed), io.EOF)
}

func TestTLSNeedsCredentials(t *testing.T) {
	_, err := secure.NewTLS(secure.Config{PSK: shared})
	require.ErrorContains(t, err, "DTLS only")
	ca := authority.New(t)
	l, _ := listenTLS(t, layer(t, secure.Config{}))
	_, err = endpoint.DialTCP(context.Background(), addr("127.0.11.62:0"), l.LocalAddr(), layer(t, secure.Config{Roots: ca.Pool()}))
	require.Error(t, err)
}

// Case 19, protected: a peer that stops reading costs messages, then the
// connection, and does not hold up the end.
func TestTLSSlowPeer(t *testing.T) {
	ca := authority.New(t)
	cfg := layer(t, secure.Config{Certificate: ca.Of(t, "127.0.11.61")})
	cfg.WriteTimeout = 100 * time.Millisecond
	stall := func(cfg endpoint.TCPConfig) (*endpoint.Conn, *recorder, error) {
		l, atServer := listenTLS(t, cfg)
		c, err := tls.Dial("tcp", l.LocalAddr().String(), &tls.Config{RootCAs: ca.Pool()})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		s := receive(t, atServer.opened)
		for range 1000 {
			if err = s.Send(message(string(make([]byte, 100<<10)))); err != nil {
				break
			}
		}
		return s, atServer, err
	}
	_, atServer, err := stall(cfg)
	require.Error(t, err, "the queue is full, or the time over already")
	var timeout net.Error
	require.ErrorAs(t, receive(t, atServer.closed), &timeout)
	require.True(t, timeout.Timeout())

	cfg.WriteTimeout = time.Hour
	s, atServer, err := stall(cfg)
	require.ErrorIs(t, err, endpoint.ErrQueueFull)
	require.NoError(t, s.Close())
	require.NoError(t, receive(t, atServer.closed))
}
