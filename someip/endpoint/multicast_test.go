package endpoint_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/endpoint"
)

// heard is what a set of groups receives.
type heard struct {
	group, from netip.AddrPort
	data        string
}

func groups(t *testing.T, cfg endpoint.UDPConfig) (*endpoint.Groups, <-chan heard) {
	t.Helper()
	ch := make(chan heard, 1024)
	g := endpoint.NewGroups(cfg, func(group, from netip.AddrPort, b []byte) { ch <- heard{group, from, string(b)} })
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g, ch
}

// groupOf is the n-th multicast group of the family of an address.
func groupOf(own netip.Addr, n int) netip.AddrPort {
	if own.Is4() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 193, 8, byte(n)}), 30499)
	}
	a := netip.MustParseAddr("ff05::4244:0").As16()
	a[15] = byte(n)
	return netip.AddrPortFrom(netip.AddrFrom16(a), 30499)
}

// 50 groups are more than the kernel allows a socket.
func TestFiftyGroups(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	wire(t, "va", "10.1.0.1/24", "vb", "10.1.0.2/24")
	ip(t, "address add 2001:db8::1/64 dev va nodad")
	ip(t, "address add 2001:db8::2/64 dev vb nodad")

	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	joined := 0
	for ; err == nil && joined < 50; joined++ {
		mreq := unix.IPMreqn{Multiaddr: groupOf(netip.MustParseAddr("10.1.0.1"), joined).Addr().As4(), Address: [4]byte{10, 1, 0, 1}}
		err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &mreq)
	}
	require.ErrorIs(t, err, unix.ENOBUFS, "the limit that is worked around")

	for _, c := range []struct{ own, peer, iface string }{
		{"10.1.0.1", "10.1.0.2", ""},
		{"10.1.0.1", "10.1.0.2", "va"},
		{"2001:db8::1", "2001:db8::2", ""},
		{"2001:db8::1", "2001:db8::2", "va"},
	} {
		own, peer := netip.MustParseAddr(c.own), netip.MustParseAddr(c.peer)
		g, ch := groups(t, endpoint.UDPConfig{Local: netip.AddrPortFrom(own, 0), Interface: c.iface})
		from, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: netip.AddrPortFrom(peer, 0)})
		require.NoError(t, err)
		for n := range 50 {
			require.NoError(t, g.Join(groupOf(own, n)))
		}
		require.NoError(t, g.Join(groupOf(own, 7)), "a second use")
		ask := func(n int) {
			t.Helper()
			require.NoError(t, from.Send(groupOf(own, n), fmt.Append(nil, n)))
			got := receive(t, ch)
			require.Equal(t, heard{groupOf(own, n), from.LocalAddr(), fmt.Sprint(n)}, got)
		}
		warmUp(t, from, groupOf(own, 0), ch)
		for n := range 50 {
			ask(n)
		}
		require.NoError(t, g.Rejoin())
		g.Leave(groupOf(own, 7))
		ask(7) // one use is left
		g.Leave(groupOf(own, 7))
		g.Leave(groupOf(own, 7))
		require.Eventually(t, func() bool { // until it is left
			require.NoError(t, from.Send(groupOf(own, 7), []byte("7")))
			require.NoError(t, from.Send(groupOf(own, 8), []byte("8")))
			first := receive(t, ch)
			return first.data == "8" && len(ch) == 0
		}, patience, 5*time.Millisecond)
		require.NoError(t, from.Close())
		require.NoError(t, g.Close())
		require.Error(t, g.Join(groupOf(own, 1)))
	}
}

// warmUp waits until the link carries what is sent to a group.
func warmUp(t *testing.T, from *endpoint.UDP, group netip.AddrPort, ch <-chan heard) {
	t.Helper()
	require.Eventually(t, func() bool {
		return from.Send(group, []byte("?")) == nil && len(ch) > 0
	}, patience, 5*time.Millisecond)
	require.NoError(t, from.Send(group, []byte("!")))
	for receive(t, ch).data != "!" {
	}
}

// NET-3: the same group and port on two networks are two things, whatever the kernel
// hears of either.
func TestSameGroupOnSeveralNetworks(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	wire(t, "va", "10.1.0.1/24", "vb", "10.1.0.2/24")
	wire(t, "vc", "10.2.0.1/24", "vd", "10.2.0.2/24")
	group := addr("239.193.7.40:30490")
	var hear []<-chan heard
	var send []*endpoint.UDP
	for i, own := range []string{"10.1.0.1:30490", "10.2.0.1:30490"} {
		g, ch := groups(t, endpoint.UDPConfig{Local: addr(own), Interface: []string{"", "vc"}[i]})
		require.NoError(t, g.Join(group))
		hear = append(hear, ch)
	}
	for _, peer := range []string{"10.1.0.2:30490", "10.2.0.2:30490"} {
		u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr(peer)})
		require.NoError(t, err)
		defer u.Close()
		send = append(send, u)
	}
	for i, u := range send {
		warmUp(t, u, group, hear[i])
	}
	for i, u := range send {
		for range 10 {
			require.NoError(t, u.Send(group, fmt.Append(nil, i)))
		}
	}
	for i, ch := range hear {
		for range 10 {
			require.Equal(t, heard{group, send[i].LocalAddr(), fmt.Sprint(i)}, receive(t, ch))
		}
		require.Empty(t, ch)
	}
}

// Senders on a link are known by one form of their address, whatever the way (case
// 20, NET-3).
func TestLinkLocal(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	wire(t, "va", "fe80::1/64", "vb", "fe80::2/64")
	a, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[fe80::1%va]:30490")})
	require.NoError(t, err)
	atA := serve(t, a)
	group := addr("[ff02::4244]:30490")
	g, inGroup := groups(t, endpoint.UDPConfig{Local: addr("[fe80::1%va]:30490")})
	require.NoError(t, g.Join(group))
	b, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[fe80::2%vb]:30490")})
	require.NoError(t, err)
	atB := serve(t, b)
	l, err := endpoint.ListenTCP(addr("[fe80::1%va]:30501"), endpoint.TCPConfig{})
	require.NoError(t, err)
	atL := newRecorder()
	l.Serve(atL)
	defer l.Close()

	warmUp(t, b, group, inGroup)
	require.NoError(t, b.Send(group, []byte("offer")))
	byGroup := receive(t, inGroup).from
	require.Equal(t, addr("[fe80::2%va]:30490"), byGroup)
	_, err = b.SendBatch([]endpoint.Datagram{{To: addr("[fe80::1%vb]:30490"), Data: []byte("subscribe")}})
	require.NoError(t, err)
	require.Equal(t, byGroup, receive(t, atA).from)
	require.NoError(t, a.Send(byGroup, []byte("ack")))
	require.Equal(t, addr("[fe80::1%vb]:30490"), receive(t, atB).from)

	// As learned from an SD option, which has no zone.
	learned := endpoint.Canonical(addr("[fe80::1]:30501"), "vb")
	c, err := endpoint.DialTCP(t.Context(), addr("[fe80::2%vb]:0"), learned, endpoint.TCPConfig{})
	require.NoError(t, err)
	c.Serve(newRecorder())
	defer c.Close()
	require.Equal(t, byGroup.Addr(), receive(t, atL.opened).RemoteAddr().Addr())
	require.Equal(t, learned, c.RemoteAddr())
	to := addr("[fe80::1%vb]:30490")
	require.Zero(t, testing.AllocsPerRun(50, func() { _ = b.Send(to, nil) }))
}
