package endpoint_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/endpoint"
)

var expedited = endpoint.Marking{DSCP: 46, Priority: 5}

type optioned interface {
	Option(level, opt int) (int, error)
}

func requireOption(t *testing.T, s optioned, level, opt, want int) {
	t.Helper()
	got, err := s.Option(level, opt)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestMarkingOfUDP(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0"), Marking: expedited})
	require.NoError(t, err)
	defer u.Close()
	requireOption(t, u, unix.IPPROTO_IP, unix.IP_TOS, 46<<2)
	requireOption(t, u, unix.SOL_SOCKET, unix.SO_PRIORITY, 5)

	g, err := endpoint.ListenMulticast(addr("239.193.7.30:30499"), endpoint.UDPConfig{Local: addr("127.0.11.1:0"), Marking: expedited})
	joined(t, err)
	defer g.Close()
	requireOption(t, g, unix.SOL_SOCKET, unix.SO_PRIORITY, 5)

	six, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[::1]:0"), Marking: expedited})
	if err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	}
	defer six.Close()
	requireOption(t, six, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 46<<2)
	requireOption(t, six, unix.SOL_SOCKET, unix.SO_PRIORITY, 5)

	_, err = endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0"), Marking: endpoint.Marking{DSCP: 64}})
	require.ErrorContains(t, err, "DSCP 64")
}

// TCP-7, and the marking of both ends.
func TestOptionsOfTCP(t *testing.T) {
	cfg := endpoint.TCPConfig{Marking: expedited}
	l, atServer := server(t, cfg)
	c, _ := dial(t, l, cfg)
	for _, end := range []*endpoint.Conn{c, receive(t, atServer.opened)} {
		requireOption(t, end, unix.IPPROTO_IP, unix.IP_TOS, 46<<2)
		requireOption(t, end, unix.SOL_SOCKET, unix.SO_PRIORITY, 5)
		requireOption(t, end, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		requireOption(t, end, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1)
		requireOption(t, end, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1)
		requireOption(t, end, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
		requireOption(t, end, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 3000)
		requireOption(t, end, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	}
}

func TestBufferSizes(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0"), ReceiveBuffer: 300_000, SendBuffer: 200_000})
	require.NoError(t, err)
	defer u.Close()
	receive, send := u.Buffers()
	limit := func(name string) int {
		b, err := os.ReadFile("/proc/sys/net/core/" + name)
		require.NoError(t, err)
		v, err := strconv.Atoi(string(b[:len(b)-1]))
		require.NoError(t, err)
		return v
	}
	if os.Geteuid() == 0 {
		require.Equal(t, 300_000, receive)
		require.Equal(t, 200_000, send)
		return
	}
	require.Equal(t, min(300_000, limit("rmem_max")), receive)
	require.Equal(t, min(200_000, limit("wmem_max")), send)
}

// freePorts finds two neighbours that nobody has now.
func freePorts(t *testing.T, host string) endpoint.PortRange {
	t.Helper()
	for range 100 {
		a, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr(host+":0")))
		require.NoError(t, err)
		defer a.Close()
		first := uint16(a.Addr().(*net.TCPAddr).Port)
		b, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), first+1)))
		if err != nil || first == 0xFFFF {
			continue
		}
		b.Close()
		return endpoint.PortRange{First: first, Last: first + 1}
	}
	t.Fatal("no free ports")
	return endpoint.PortRange{}
}

func TestPortsFromRange(t *testing.T) { // UDP-6
	ports := freePorts(t, "127.0.11.31")
	for name, open := range map[string]func() (interface{ LocalAddr() netip.AddrPort }, error){
		"UDP": func() (interface{ LocalAddr() netip.AddrPort }, error) {
			u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.31:0"), Ports: ports})
			if err == nil {
				t.Cleanup(func() { u.Close() })
			}
			return u, err
		},
		"TCP": func() (interface{ LocalAddr() netip.AddrPort }, error) {
			l, err := endpoint.ListenTCP(addr("127.0.11.31:0"), endpoint.TCPConfig{Ports: ports})
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return l, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := open()
			require.NoError(t, err)
			require.Equal(t, ports.First, one.LocalAddr().Port())
			two, err := open()
			require.NoError(t, err)
			require.Equal(t, ports.Last, two.LocalAddr().Port())
			_, err = open()
			require.ErrorContains(t, err, "no free port in")
			require.ErrorAs(t, err, new(*endpoint.InUseError))
		})
	}
	_, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.31:0"), Ports: endpoint.PortRange{First: 9, Last: 8}})
	require.ErrorContains(t, err, "no range")
}

func TestDialFromRange(t *testing.T) {
	l, _ := server(t, endpoint.TCPConfig{})
	cfg := endpoint.TCPConfig{Ports: freePorts(t, "127.0.11.32")}
	local := addr("127.0.11.32:0")
	var conns []*endpoint.Conn
	for i := range 2 {
		c, err := endpoint.DialTCP(context.Background(), local, l.LocalAddr(), cfg)
		require.NoError(t, err)
		defer c.Close()
		require.Equal(t, cfg.Ports.First+uint16(i), c.LocalAddr().Port())
		conns = append(conns, c)
	}
	_, err := endpoint.DialTCP(context.Background(), local, l.LocalAddr(), cfg)
	require.ErrorAs(t, err, new(*endpoint.InUseError))

	// A port is free again at once, whatever TCP remembers of it (case 55).
	require.NoError(t, conns[0].Close())
	require.Eventually(t, func() bool {
		c, err := endpoint.DialTCP(context.Background(), local, l.LocalAddr(), cfg)
		if err != nil {
			return false
		}
		return c.Close() == nil
	}, patience, 10*time.Millisecond)
}

func TestSenderFilter(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{
		Local:  addr("127.0.11.1:0"),
		Accept: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.12.0/24")},
	})
	require.NoError(t, err)
	ch := serve(t, u)
	stranger, _ := listen(t, "127.0.11.2:0")
	neighbour, _ := listen(t, "127.0.12.2:0")
	require.NoError(t, stranger.Send(u.LocalAddr(), []byte("no")))
	require.NoError(t, neighbour.Send(u.LocalAddr(), []byte("yes")))
	require.Equal(t, "yes", string(receive(t, ch).data))
	s := u.Stats()
	require.Equal(t, endpoint.UDPStats{Received: 1, Filtered: 1, DropsUnknown: s.DropsUnknown}, s)
}

func TestAddressOfOthers(t *testing.T) {
	for _, local := range []string{"192.0.2.77:0", "[2001:db8::77]:0"} {
		var missing *endpoint.NoAddressError
		_, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr(local)})
		require.ErrorAs(t, err, &missing)
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		require.Equal(t, addr(local).Addr(), missing.Addr)
		_, err = endpoint.ListenTCP(addr(local), endpoint.TCPConfig{})
		require.ErrorAs(t, err, &missing)
	}
	_, err := endpoint.ListenMulticast(addr("239.193.7.31:30499"), endpoint.UDPConfig{Local: addr("192.0.2.77:0")})
	if errors.Is(err, syscall.ENOPROTOOPT) {
		t.Skipf("no multicast here: %v", err)
	}
	require.ErrorAs(t, err, new(*endpoint.NoAddressError))
}

// bindShared binds as other stacks do, with SO_REUSEADDR.
func bindShared(t *testing.T, local netip.AddrPort) *net.UDPConn {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}), err)
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp4", local.String())
	require.NoError(t, err)
	t.Cleanup(func() { pc.Close() })
	return pc.(*net.UDPConn)
}

// Another stack at our address is noticed and named, whether it shares its port or
// not; one at another address, with the port on all addresses, can be lived with.
func TestCollision(t *testing.T) { // RB-9
	collides := func(cfg endpoint.UDPConfig, advice string) {
		t.Helper()
		_, err := endpoint.ListenUDP(cfg)
		var used *endpoint.InUseError
		require.ErrorAs(t, err, &used)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.Equal(t, cfg.Local, used.Addr)
		require.Contains(t, used.Holder, strconv.Itoa(os.Getpid()))
		require.ErrorContains(t, err, cfg.Local.String())
		require.ErrorContains(t, err, advice)
	}
	other := bindShared(t, addr("127.0.11.41:0")).LocalAddr().(*net.UDPAddr).AddrPort()
	collides(endpoint.UDPConfig{Local: other}, "address of its own")
	collides(endpoint.UDPConfig{Local: other, Shared: true}, "address of its own")

	port := bindShared(t, addr("0.0.0.0:0")).LocalAddr().(*net.UDPAddr).AddrPort().Port()
	beside := netip.AddrPortFrom(netip.MustParseAddr("127.0.11.42"), port)
	collides(endpoint.UDPConfig{Local: beside}, "on all addresses")
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: beside, Shared: true})
	require.NoError(t, err)
	ch := serve(t, u)
	require.NoError(t, u.Send(u.LocalAddr(), []byte("ours")))
	require.Equal(t, "ours", string(receive(t, ch).data))
	require.NoError(t, u.Alone())
	bindShared(t, beside) // later
	var used *endpoint.InUseError
	require.ErrorAs(t, u.Alone(), &used)
	require.Equal(t, beside, used.Addr)

	l, _ := server(t, endpoint.TCPConfig{})
	_, err = endpoint.ListenTCP(l.LocalAddr(), endpoint.TCPConfig{})
	require.ErrorAs(t, err, new(*endpoint.InUseError))
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
}

func TestEchoes(t *testing.T) {
	var e endpoint.Echoes
	msg := func(i int) []byte { return []byte{byte(i), byte(i >> 8), 0xFF} }
	require.False(t, e.Own(msg(0)))
	for i := range 100 {
		e.Sent(msg(i))
		require.True(t, e.Own(msg(i)))
		require.True(t, e.Own(msg(max(0, i-63))), "an echo that is late")
		require.False(t, e.Own(msg(i+1)))
	}
	require.False(t, e.Own(msg(0)))
	require.Zero(t, testing.AllocsPerRun(100, func() { e.Sent(msg0); e.Own(msg0) }))
}

var msg0 = make([]byte, 100)

// The same address is always written the same way.
func TestCase20Canonical(t *testing.T) {
	for _, c := range []struct{ in, zone, want string }{
		{"10.0.0.1:1", "eth0", "10.0.0.1:1"},
		{"[::ffff:10.0.0.1]:1", "", "10.0.0.1:1"},
		{"[fe80::1]:1", "eth0", "[fe80::1%eth0]:1"},
		{"[fe80::1]:1", "", "[fe80::1]:1"},
		{"[fe80::1%eth1]:1", "eth0", "[fe80::1%eth1]:1"},
		{"[fe80::1%1]:1", "", "[fe80::1%lo]:1"},
		{"[fe80::1%99999]:1", "", "[fe80::1%99999]:1"},
		{"[ff02::1]:1", "eth0", "[ff02::1%eth0]:1"},
		{"[ff05::1]:1", "eth0", "[ff05::1]:1"},
		{"[2001:db8::1%eth0]:1", "", "[2001:db8::1]:1"},
	} {
		require.Equal(t, addr(c.want), endpoint.Canonical(addr(c.in), c.zone))
	}
}
