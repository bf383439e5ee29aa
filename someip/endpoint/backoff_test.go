package endpoint_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
)

func TestBackoff(t *testing.T) {
	ms := time.Millisecond
	b := endpoint.Backoff{First: 100 * ms, Max: 300 * ms, Attempts: 5}
	for _, c := range []struct {
		n      int
		random float64
		want   time.Duration
	}{{1, 0.5, 100 * ms}, {2, 0.5, 200 * ms}, {3, 0.5, 300 * ms}, {4, 0.5, 300 * ms}, {1, 0, 75 * ms}, {2, 0, 150 * ms}} {
		d, again := b.Delay(c.n, c.random)
		require.True(t, again)
		require.Equal(t, c.want, d)
	}
	d, _ := b.Delay(1, 0.999)
	require.Less(t, d, 125*ms)
	_, again := b.Delay(5, 0)
	require.False(t, again)

	var def endpoint.Backoff
	d, again = def.Delay(1, 0.5)
	require.True(t, again)
	require.Equal(t, endpoint.DefaultBackoffFirst, d)
	d, again = def.Delay(1<<30, 0.5)
	require.True(t, again)
	require.Equal(t, endpoint.DefaultBackoffMax, d)
}

// A server that is late is reached once it is there.
func TestRedial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.11.1:0")
	require.NoError(t, err)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	require.NoError(t, l.Close())
	quick := endpoint.Backoff{First: time.Millisecond, Max: 5 * time.Millisecond, Attempts: 3}
	_, err = endpoint.Redial(t.Context(), addr("127.0.11.2:0"), at, endpoint.TCPConfig{}, quick)
	require.ErrorContains(t, err, "refused")

	ctx, cancel := context.WithCancel(t.Context())
	quick.Attempts = 0
	ended := make(chan error, 1)
	go func() {
		_, err := endpoint.Redial(ctx, addr("127.0.11.2:0"), at, endpoint.TCPConfig{}, quick)
		ended <- err
	}()
	cancel()
	require.Error(t, receive(t, ended))

	connected := make(chan *endpoint.Conn, 1)
	go func() {
		c, err := endpoint.Redial(t.Context(), addr("127.0.11.2:0"), at, endpoint.TCPConfig{}, quick)
		if err == nil {
			connected <- c
		}
	}()
	late, err := endpoint.ListenTCP(at, endpoint.TCPConfig{})
	require.NoError(t, err)
	late.Serve(newRecorder())
	defer late.Close()
	require.NoError(t, receive(t, connected).Close())
}
