package endpoint_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/endpoint"
)

// socketOf finds the socket of this process that is bound to an address, and
// connected to a peer if one is given: what the kernel thinks of it cannot be
// asked through the API.
func socketOf(t *testing.T, kind int, local, peer netip.AddrPort) int {
	t.Helper()
	for fd := 3; fd < 1024; fd++ {
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || got != kind {
			continue
		}
		name, err := unix.Getsockname(fd)
		if err != nil || !at(name, local) {
			continue
		}
		if !peer.IsValid() {
			return fd
		}
		if name, err = unix.Getpeername(fd); err == nil && at(name, peer) {
			return fd
		}
	}
	t.Fatalf("no socket at %v", local)
	return -1
}

func at(name unix.Sockaddr, want netip.AddrPort) bool {
	in, ok := name.(*unix.SockaddrInet4)
	return ok && netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port)) == want
}

func option(t *testing.T, fd, level, name int) int {
	t.Helper()
	v, err := unix.GetsockoptInt(fd, level, name)
	require.NoError(t, err)
	return v
}

// UDP-8, NET-3: the receive buffer is as large as may be asked for, and multicast
// stays on the link.
func TestUDPSocketOptions(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
	require.NoError(t, err)
	defer u.Close()
	fd := socketOf(t, unix.SOCK_DGRAM, u.LocalAddr(), netip.AddrPort{})
	require.Equal(t, 1, option(t, fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL))

	require.GreaterOrEqual(t, endpoint.DefaultReceiveBuffer, 1<<20)
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 11, 1)})
	require.NoError(t, err)
	defer probe.Close()
	other := socketOf(t, unix.SOCK_DGRAM, probe.LocalAddr().(*net.UDPAddr).AddrPort(), netip.AddrPort{})
	stock := option(t, other, unix.SOL_SOCKET, unix.SO_RCVBUF)
	granted := option(t, fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if unix.SetsockoptInt(other, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20) == nil {
		require.GreaterOrEqual(t, granted, 1<<20)
	} else { // the system's limit is the limit
		require.NoError(t, unix.SetsockoptInt(other, unix.SOL_SOCKET, unix.SO_RCVBUF, endpoint.DefaultReceiveBuffer))
		require.Equal(t, option(t, other, unix.SOL_SOCKET, unix.SO_RCVBUF), granted)
	}
	require.GreaterOrEqual(t, granted, stock)
}

// TCP-1, TCP-7: both ends send at once and notice a dead peer within seconds.
func TestTCPSocketOptions(t *testing.T) {
	l, atServer := server(t, endpoint.TCPConfig{})
	c, err := endpoint.DialTCP(context.Background(), addr("127.0.11.2:0"), l.LocalAddr(), endpoint.TCPConfig{})
	require.NoError(t, err)
	defer c.Close()
	receive(t, atServer.opened)
	for _, fd := range []int{
		socketOf(t, unix.SOCK_STREAM, c.LocalAddr(), l.LocalAddr()),
		socketOf(t, unix.SOCK_STREAM, l.LocalAddr(), c.LocalAddr()),
	} {
		require.NotZero(t, option(t, fd, unix.IPPROTO_TCP, unix.TCP_NODELAY))
		require.NotZero(t, option(t, fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE))
		idle := option(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		idle += option(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL) * option(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
		require.LessOrEqual(t, idle, 5)
		timeout := option(t, fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		require.Positive(t, timeout)
		require.LessOrEqual(t, timeout, 5000)
	}
}
