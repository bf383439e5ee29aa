package secure_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/internal/authority"
)

// pairs are the credentials of a server and a client that trust each other.
func pairs(t *testing.T) map[string][2]secure.Config {
	t.Helper()
	ca := authority.New(t)
	server := secure.Config{Certificate: ca.Of(t, "127.0.11.61")}
	mutual := secure.Config{Certificate: server.Certificate, Roots: ca.Pool()}
	return map[string][2]secure.Config{
		"PSK":                 {{PSK: shared}, {PSK: shared}},
		"certificate":         {server, {Roots: ca.Pool()}},
		"mutual certificates": {mutual, {Certificate: ca.Of(t, "127.0.11.62"), Roots: ca.Pool()}},
	}
}

func TestDTLSBothWays(t *testing.T) {
	for name, cfg := range pairs(t) {
		t.Run(name, func(t *testing.T) {
			s, atServer := protect(t, "127.0.11.61:0", cfg[0], false)
			c, atClient := protect(t, "127.0.11.62:0", cfg[1], true)
			for i := range 3 { // before there is an association
				require.NoError(t, c.Send(s.LocalAddr(), fmt.Append(nil, i)))
			}
			for i := range 3 {
				require.Equal(t, datagram{c.LocalAddr(), fmt.Sprint(i)}, receive(t, atServer))
			}
			n, err := s.SendBatch([]endpoint.Datagram{
				{To: c.LocalAddr(), Data: []byte("a")},
				{To: addr("127.0.11.63:9"), Data: []byte("stranger")},
				{To: c.LocalAddr(), Data: make([]byte, 1416)},
			})
			require.ErrorIs(t, err, secure.ErrNotConnected)
			require.Equal(t, 2, n)
			require.Equal(t, datagram{s.LocalAddr(), "a"}, receive(t, atClient))
			require.Len(t, receive(t, atClient).data, 1416)
			require.Equal(t, secure.Stats{Peers: 1, Established: 1}, s.Stats())

			require.NoError(t, c.Close())
			require.Eventually(t, func() bool { return s.Stats().Peers == 0 }, patience, time.Millisecond, "the end is announced")
			require.Error(t, c.Send(s.LocalAddr(), []byte("x")))
		})
	}
}

func TestDTLSRefuses(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	server := secure.Config{Certificate: ca.Of(t, "127.0.11.61"), Roots: ca.Pool()}
	mine := ca.Of(t, "127.0.11.62")
	wrong := &secure.PSK{Identity: "gateway", Keys: map[string][]byte{"gateway": []byte("another key")}}
	nobody := &secure.PSK{Identity: "nobody", Keys: map[string][]byte{"nobody": []byte("a key")}}
	for name, cfg := range map[string][2]secure.Config{
		"unknown authority of the server": {server, {Certificate: mine, Roots: other.Pool()}},
		"another server":                  {server, {Certificate: mine, Roots: ca.Pool(), ServerName: "127.0.11.99"}},
		"no certificate of the client":    {server, {Roots: ca.Pool()}},
		"unknown authority of the client": {server, {Certificate: other.Of(t, "127.0.11.62"), Roots: ca.Pool()}},
		"wrong key":                       {{PSK: shared}, {PSK: wrong}},
		"unknown identity":                {{PSK: shared}, {PSK: nobody}},
		"PSK against certificates":        {server, {PSK: shared}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg[0].HandshakeTimeout, cfg[1].HandshakeTimeout = time.Second, time.Second
			s, atServer := protect(t, "127.0.11.61:0", cfg[0], false)
			c, _ := protect(t, "127.0.11.62:0", cfg[1], true)
			require.NoError(t, c.Send(s.LocalAddr(), []byte("secret")))
			require.Eventually(t, func() bool {
				return s.Stats().Peers == 0 && s.Stats().Failed > 0 && c.Stats().Failed > 0 && c.Stats().Lost == 1
			}, patience, 5*time.Millisecond)
			require.Empty(t, atServer)
		})
	}
}

func TestDTLSNeedsCredentials(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.61:0")})
	require.NoError(t, err)
	defer u.Close()
	for _, cfg := range []secure.Config{{}, {PSK: &secure.PSK{Identity: "x"}}} {
		d, err := secure.NewDTLS(cfg)
		require.NoError(t, err)
		if cfg.PSK == nil {
			_, err = d.Server(u)
			require.ErrorIs(t, err, secure.ErrNoCredentials)
			continue
		}
		_, err = d.Client(u)
		require.ErrorIs(t, err, secure.ErrNoKey)
	}
}

// A client that was started anew on the same port, and lost all it knew, is served
// again without that it says good-bye; a hello that leads nowhere changes nothing.
func TestDTLSPeerBeginsAnew(t *testing.T) {
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{PSK: shared}, false)
	live := func(local netip.AddrPort) (*endpoint.UDP, endpoint.PacketSocket) {
		u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: local})
		require.NoError(t, err)
		d, err := secure.NewDTLS(secure.Config{PSK: shared})
		require.NoError(t, err)
		c, err := d.Client(u)
		require.NoError(t, err)
		c.Serve(func(netip.AddrPort, []byte) {})
		return u, c
	}
	u, first := live(addr("127.0.11.62:0"))
	require.NoError(t, first.Send(s.LocalAddr(), []byte("first life")))
	require.Equal(t, "first life", receive(t, atServer).data)
	hello := append([]byte{22, 0xFE, 0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 1) // the shortest that looks like one
	require.NoError(t, u.Send(s.LocalAddr(), hello))
	require.NoError(t, first.Send(s.LocalAddr(), []byte("still the first")))
	require.Equal(t, "still the first", receive(t, atServer).data)
	require.NoError(t, u.Close())
	require.NoError(t, ignoreClosed(first.Close()))

	// The hello above is served until its handshake fails, unless this one joins it.
	_, second := live(u.LocalAddr())
	defer second.Close()
	require.NoError(t, second.Send(s.LocalAddr(), []byte("second life")))
	require.Equal(t, "second life", receive(t, atServer).data)
	require.Equal(t, 1, s.Stats().Peers)
	require.EqualValues(t, 2, s.Stats().Established)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// An association is given up on request; the next datagram makes another.
func TestDTLSAbortFrom(t *testing.T) {
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{PSK: shared}, false)
	c, _ := protect(t, "127.0.11.62:0", secure.Config{PSK: shared}, true)
	require.NoError(t, c.Send(s.LocalAddr(), []byte("one")))
	require.Equal(t, "one", receive(t, atServer).data)
	c.AbortFrom(addr("127.0.11.99:0").Addr())
	require.Equal(t, 1, c.Stats().Peers)
	c.AbortFrom(s.LocalAddr().Addr())
	require.NoError(t, c.Send(s.LocalAddr(), []byte("two")))
	require.Equal(t, "two", receive(t, atServer).data)
	require.EqualValues(t, 2, s.Stats().Established)
}

// Junk is counted and costs no association.
func TestDTLSJunk(t *testing.T) {
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{PSK: shared}, false)
	c, _ := protect(t, "127.0.11.62:0", secure.Config{PSK: shared}, true)
	require.NoError(t, c.Send(s.LocalAddr(), []byte("good")))
	receive(t, atServer)
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.63:0")})
	require.NoError(t, err)
	defer u.Close()
	junk := make([]byte, 100)
	for i := range 20 {
		_, _ = rand.Read(junk)
		junk[0] = byte(i)
		require.NoError(t, u.Send(s.LocalAddr(), junk))
	}
	require.NoError(t, u.Send(s.LocalAddr(), nil))
	require.NoError(t, c.Send(s.LocalAddr(), []byte("still good")))
	require.Equal(t, "still good", receive(t, atServer).data)
	require.Eventually(t, func() bool { return s.Stats().Ignored == 21 }, patience, time.Millisecond)
	require.Equal(t, 1, s.Stats().Peers)
}

func TestDTLSLimits(t *testing.T) {
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{PSK: shared, MaxPeers: 1, IdleTimeout: time.Hour}, false)
	one, _ := protect(t, "127.0.11.62:0", secure.Config{PSK: shared}, true)
	require.NoError(t, one.Send(s.LocalAddr(), []byte("one")))
	receive(t, atServer)
	two, _ := protect(t, "127.0.11.62:0", secure.Config{PSK: shared, MaxPeers: 1}, true)
	require.NoError(t, two.Send(s.LocalAddr(), []byte("two")))
	require.Eventually(t, func() bool { return s.Stats().Refused > 0 }, patience, time.Millisecond)
	require.ErrorIs(t, two.Send(addr("127.0.11.64:9"), nil), secure.ErrTooManyPeers)
	var err error
	for range 65 {
		if err = two.Send(s.LocalAddr(), []byte("waits")); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, secure.ErrQueueFull)
}

func TestDTLSForgetsSilentPeers(t *testing.T) {
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{PSK: shared, IdleTimeout: 50 * time.Millisecond}, false)
	c, _ := protect(t, "127.0.11.62:0", secure.Config{PSK: shared}, true)
	require.NoError(t, c.Send(s.LocalAddr(), []byte("x")))
	receive(t, atServer)
	require.Eventually(t, func() bool { return s.Stats().Peers == 0 && c.Stats().Peers == 0 }, patience, time.Millisecond)
	require.NoError(t, c.Send(s.LocalAddr(), []byte("y")))
	require.Equal(t, "y", receive(t, atServer).data)
}

func BenchmarkDTLSEcho(b *testing.B) {
	open := func(local string, client bool) endpoint.PacketSocket {
		u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr(local)})
		require.NoError(b, err)
		d, err := secure.NewDTLS(secure.Config{PSK: shared})
		require.NoError(b, err)
		if client {
			p, err := d.Client(u)
			require.NoError(b, err)
			return p
		}
		p, err := d.Server(u)
		require.NoError(b, err)
		return p
	}
	s, c := open("127.0.11.61:0", false), open("127.0.11.62:0", true)
	defer s.Close()
	defer c.Close()
	s.Serve(func(from netip.AddrPort, d []byte) { _ = s.Send(from, d) })
	done := make(chan struct{}, 1)
	c.Serve(func(netip.AddrPort, []byte) { done <- struct{}{} })
	msg := message("12345678")
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Send(s.LocalAddr(), msg)
		<-done
	}
}

// Many clients at once, each with its own association, in order.
func TestDTLSManyClients(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.61:0")})
	require.NoError(t, err)
	d, err := secure.NewDTLS(secure.Config{PSK: shared})
	require.NoError(t, err)
	s, err := d.Server(u)
	require.NoError(t, err)
	defer s.Close()
	s.Serve(func(from netip.AddrPort, b []byte) { _ = s.Send(from, b) })
	var clients []secure.Socket
	var echoes []<-chan datagram
	for range 20 {
		c, ch := protect(t, "127.0.11.62:0", secure.Config{PSK: shared}, true)
		clients, echoes = append(clients, c), append(echoes, ch)
		require.NoError(t, c.Send(s.LocalAddr(), []byte("hello")))
	}
	for i, ch := range echoes {
		require.Equal(t, "hello", receive(t, ch).data)
		for n := range 20 {
			require.NoError(t, clients[i].Send(s.LocalAddr(), fmt.Append(nil, n)))
		}
	}
	for _, ch := range echoes {
		for n := range 20 {
			require.Equal(t, datagram{s.LocalAddr(), fmt.Sprint(n)}, receive(t, ch))
		}
	}
	require.Equal(t, 20, s.(secure.Socket).Stats().Peers)
}

// A handshake gets through where every fourth datagram is lost, either way.
func TestDTLSHandshakeOverLoss(t *testing.T) {
	ca := authority.New(t)
	s, atServer := protect(t, "127.0.11.61:0", secure.Config{Certificate: ca.Of(t, "127.0.11.67")}, false)
	front, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.67:0")})
	require.NoError(t, err)
	defer front.Close()
	back, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.68:0")})
	require.NoError(t, err)
	defer back.Close()
	var n atomic.Int32
	lost := func() bool { return n.Add(1)%4 == 0 }
	var client atomic.Value
	front.Serve(func(from netip.AddrPort, b []byte) {
		client.Store(from)
		if !lost() {
			_ = back.Send(s.LocalAddr(), b)
		}
	})
	back.Serve(func(_ netip.AddrPort, b []byte) {
		if to, ok := client.Load().(netip.AddrPort); ok && !lost() {
			_ = front.Send(to, b)
		}
	})
	c, _ := protect(t, "127.0.11.62:0", secure.Config{Roots: ca.Pool(), HandshakeTimeout: patience}, true)
	require.Eventually(t, func() bool {
		return c.Send(front.LocalAddr(), []byte("x")) == nil && len(atServer) > 0
	}, patience, 50*time.Millisecond)
	require.EqualValues(t, 1, s.Stats().Established)
}
