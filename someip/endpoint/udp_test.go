package endpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
)

const patience = 10 * time.Second

type datagram struct {
	from netip.AddrPort
	data []byte
}

// joined requires that a group was joined, or skips the test: qemu-user has not the
// options of multicast.
func joined(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, syscall.ENOPROTOOPT) {
		t.Skipf("no multicast here: %v", err)
	}
	require.NoError(t, err)
}

// listen opens a socket of a simulated host and returns what it receives.
func listen(t *testing.T, local string) (*endpoint.UDP, <-chan datagram) {
	t.Helper()
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr(local)})
	require.NoError(t, err)
	return u, serve(t, u)
}

func serve(t *testing.T, u *endpoint.UDP) <-chan datagram {
	t.Helper()
	ch := make(chan datagram, 256)
	u.Serve(func(from netip.AddrPort, b []byte) { ch <- datagram{from, bytes.Clone(b)} })
	t.Cleanup(func() { require.NoError(t, u.Close()) })
	return ch
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing received")
		panic("unreachable")
	}
}

func TestUDPUnicast(t *testing.T) {
	a, fromB := listen(t, "127.0.11.1:0")
	b, fromA := listen(t, "127.0.11.2:0")
	require.NoError(t, a.Send(b.LocalAddr(), []byte("request")))
	got := receive(t, fromA)
	require.Equal(t, "request", string(got.data))
	require.Equal(t, a.LocalAddr(), got.from)
	require.NoError(t, b.Send(got.from, []byte("response")))
	got = receive(t, fromB)
	require.Equal(t, "response", string(got.data))
	require.Equal(t, b.LocalAddr(), got.from, "leaves from the bound port (UDP-4)")
}

func TestUDPManyDatagramsOfEverySize(t *testing.T) {
	a, _ := listen(t, "127.0.11.1:0")
	b, ch := listen(t, "127.0.11.2:0")
	for i := range 100 { // several batches
		payload := bytes.Repeat([]byte{byte(i)}, i*600)
		require.NoError(t, a.Send(b.LocalAddr(), payload))
		require.Equal(t, payload, receive(t, ch).data)
	}
	for i := range 100 {
		require.NoError(t, a.Send(b.LocalAddr(), fmt.Append(nil, i)))
	}
	for i := range 100 {
		require.Equal(t, fmt.Sprint(i), string(receive(t, ch).data))
	}
}

func TestUDPIPv6(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[::1]:0")})
	if err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	}
	ch := serve(t, u)
	require.NoError(t, u.Send(u.LocalAddr(), []byte("x")))
	require.Equal(t, u.LocalAddr(), receive(t, ch).from)
}

func TestUDPRefusesATakenPort(t *testing.T) {
	a, _ := listen(t, "127.0.11.1:0")
	_, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: a.LocalAddr()})
	require.Error(t, err, "two stacks on one address must be noticed (RB-9)")
}

// The sockets of service discovery: two for each host, unicast and multicast, at
// the same port.
func TestMulticastOnLoopback(t *testing.T) {
	one, atOne := listen(t, "127.0.11.1:0")
	port := one.LocalAddr().Port()
	two, atTwo := listen(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.11.2"), port).String())
	group := netip.AddrPortFrom(netip.MustParseAddr("239.193.7.11"), port)
	var groups []<-chan datagram
	for _, host := range []*endpoint.UDP{one, two} {
		u, err := endpoint.ListenMulticast(group, endpoint.UDPConfig{Local: host.LocalAddr()})
		joined(t, err)
		groups = append(groups, serve(t, u))
		require.NoError(t, u.Rejoin())
	}
	require.NoError(t, one.Send(group, []byte("offer")))
	for _, ch := range groups {
		got := receive(t, ch)
		require.Equal(t, "offer", string(got.data))
		require.Equal(t, one.LocalAddr(), got.from, "from the own address and SD port")
	}
	require.NoError(t, one.Send(two.LocalAddr(), []byte("subscribe")))
	require.Equal(t, "subscribe", string(receive(t, atTwo).data), "unicast is told from multicast")
	require.Empty(t, atOne)
	for _, ch := range groups {
		require.Empty(t, ch)
	}
}

func TestMulticastIPv6(t *testing.T) {
	own, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[::1]:0")})
	if err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	}
	serve(t, own)
	for _, group := range []string{"ff05::4244", "ff02::4244"} {
		to := netip.AddrPortFrom(netip.MustParseAddr(group), own.LocalAddr().Port())
		u, err := endpoint.ListenMulticast(to, endpoint.UDPConfig{Local: own.LocalAddr()})
		joined(t, err)
		ch := serve(t, u)
		err = own.Send(to, []byte("offer"))
		if errors.Is(err, syscall.ENETUNREACH) {
			t.Skip("the loopback interface has no route for IPv6 multicast")
		}
		require.NoError(t, err)
		got := receive(t, ch)
		require.Equal(t, "offer", string(got.data))
		require.Equal(t, own.LocalAddr(), got.from)
	}
}

func TestMulticastNeedsAGroup(t *testing.T) {
	_, err := endpoint.ListenMulticast(addr("127.0.0.1:1"), endpoint.UDPConfig{Local: addr("127.0.0.1:0")})
	require.ErrorContains(t, err, "not a multicast group")
	_, err = endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.0.1:0"), Interface: "none-such"})
	require.ErrorContains(t, err, "none-such")
}

func TestUDPDoesNotAllocate(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
	require.NoError(t, err)
	defer u.Close()
	done := make(chan struct{}, 1)
	u.Serve(func(netip.AddrPort, []byte) { done <- struct{}{} })
	msg := make([]byte, 24)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		_ = u.Send(u.LocalAddr(), msg)
		<-done
	}))
}

// BenchmarkEcho compares a round trip through two of our sockets with one through
// bare net.UDPConn.
func BenchmarkEcho(b *testing.B) {
	msg := make([]byte, 24)
	b.Run("endpoint", func(b *testing.B) {
		server, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
		require.NoError(b, err)
		defer server.Close()
		server.Serve(func(from netip.AddrPort, d []byte) { _ = server.Send(from, d) })
		client, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.2:0")})
		require.NoError(b, err)
		defer client.Close()
		done := make(chan struct{}, 1)
		client.Serve(func(netip.AddrPort, []byte) { done <- struct{}{} })
		b.ReportAllocs()
		for b.Loop() {
			_ = client.Send(server.LocalAddr(), msg)
			<-done
		}
	})
	b.Run("bare", func(b *testing.B) {
		server, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr("127.0.11.1:0")))
		require.NoError(b, err)
		defer server.Close()
		go func() {
			buf := make([]byte, 2048)
			for {
				n, from, err := server.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = server.WriteToUDPAddrPort(buf[:n], from)
			}
		}()
		client, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr("127.0.11.2:0")))
		require.NoError(b, err)
		defer client.Close()
		to := server.LocalAddr().(*net.UDPAddr).AddrPort()
		buf := make([]byte, 2048)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = client.WriteToUDPAddrPort(msg, to)
			_, _, _ = client.ReadFromUDPAddrPort(buf)
		}
	})
}
