package endpoint_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
)

func watchLinks(t *testing.T) *endpoint.Links {
	t.Helper()
	l, err := endpoint.WatchLinks()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.NoError(t, l.Close(), "twice does no harm")
	})
	return l
}

// until takes what is told of an address until it is p.
func until(t *testing.T, ch <-chan endpoint.Presence, p endpoint.Presence) {
	t.Helper()
	for receive(t, ch) != p {
	}
}

func TestLinksOnLoopback(t *testing.T) {
	l := watchLinks(t)
	host := netip.MustParseAddr
	require.Equal(t, endpoint.Up, l.Presence(host("127.0.11.1"), ""), "any address of 127/8")
	require.Equal(t, endpoint.Up, l.Presence(host("127.0.0.1"), "lo"))
	require.Equal(t, endpoint.Absent, l.Presence(host("127.0.0.1"), "none-such"))
	require.Equal(t, endpoint.Absent, l.Presence(host("192.0.2.77"), ""))
	require.NoError(t, l.Wait(context.Background(), host("127.0.11.1"), ""))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, l.Wait(ctx, host("192.0.2.77"), ""), context.Canceled)
	waited := make(chan error, 1)
	go func() { waited <- l.Wait(context.Background(), host("192.0.2.77"), "") }()
	require.NoError(t, l.Close())
	require.ErrorIs(t, receive(t, waited), endpoint.ErrLinksClosed)
}

func TestLinksComeAndGo(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := watchLinks(t)
	own := netip.MustParseAddr("10.1.0.1")
	news := make(chan endpoint.Presence, 64)
	now, stop := l.Follow(own, "", func(p endpoint.Presence) { news <- p })
	require.Equal(t, endpoint.Absent, now)

	wire(t, "va", "10.1.0.1/24", "vb", "10.1.0.2/24")
	until(t, news, endpoint.Up)
	ip(t, "link set va down")
	until(t, news, endpoint.Down)
	ip(t, "link set va up")
	until(t, news, endpoint.Up)
	ip(t, "link set vb down") // the cable
	until(t, news, endpoint.Down)
	ip(t, "link set vb up")
	until(t, news, endpoint.Up)
	ip(t, "address del 10.1.0.1/24 dev va")
	until(t, news, endpoint.Absent)
	ip(t, "address add 10.1.0.1/24 dev va")
	until(t, news, endpoint.Up)
	require.Equal(t, endpoint.Up, l.Presence(own, "va"))
	require.Equal(t, endpoint.Absent, l.Presence(own, "vb"), "it is on the other interface")
	ip(t, "link del va")
	until(t, news, endpoint.Absent)

	stop()
	stop()
	wire(t, "va", "10.1.0.1/24", "vb", "10.1.0.2/24")
	require.NoError(t, l.Wait(context.Background(), netip.MustParseAddr("10.1.0.2"), "vb"))
	require.Empty(t, news)
}

// An address that appears late, of IPv6 only once the host knows it to be its own
// alone.
func TestAddressAppearsLate(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := watchLinks(t)
	for local, command := range map[string]string{
		"10.1.0.9:30490":         "address add 10.1.0.9/24 dev va",
		"[2001:db8::9]:30490":    "address add 2001:db8::9/64 dev va",
		"[fe80::9%va]:30490":     "address add fe80::9/64 dev va",
		"[2001:db8::77]:30490":   "address add 2001:db8::77/64 dev va nodad",
		"[2001:db8:1::77]:30490": "address add 2001:db8:1::77 peer 2001:db8:1::78 dev va nodad",
	} {
		cfg := endpoint.UDPConfig{Local: addr(local)}
		_, err := endpoint.ListenUDP(cfg)
		if cfg.Local.Addr().Zone() == "" {
			require.ErrorAs(t, err, new(*endpoint.NoAddressError))
		} else {
			require.Error(t, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		done := make(chan error, 1)
		go func() { done <- l.Wait(ctx, cfg.Local.Addr(), cfg.Interface) }()
		if l.Presence(netip.MustParseAddr("10.1.0.1"), "") == endpoint.Absent {
			wire(t, "va", "10.1.0.1/24", "vb", "10.1.0.2/24")
		}
		ip(t, command)
		require.NoError(t, receive(t, done), local)
		cancel()
		u, err := endpoint.ListenUDP(cfg)
		require.NoError(t, err, local)
		require.NoError(t, u.Close())
	}
}

// NET-1: an interface that was replaced by another of its name: what was bound goes
// on once multicast was taken up anew.
func TestRejoinAfterInterfaceWasAway(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	links := watchLinks(t)
	for _, c := range []struct{ own, peer, group, iface string }{
		{"10.1.0.1/24", "10.1.0.2/24", "239.193.7.50:30490", ""},
		{"10.1.0.1/24", "10.1.0.2/24", "239.193.7.50:30490", "va"},
		{"2001:db8::1/64", "2001:db8::2/64", "[ff05::50]:30490", ""},
		{"fe80::1/64", "fe80::2/64", "[ff02::50]:30490", "va"},
	} {
		own, peer := netip.MustParsePrefix(c.own).Addr(), netip.MustParsePrefix(c.peer).Addr()
		group := addr(c.group)
		if own.IsLinkLocalUnicast() {
			own, peer = own.WithZone("va"), peer.WithZone("vb")
		}
		start := func() {
			wire(t, "va", c.own, "vb", c.peer)
			require.NoError(t, links.Wait(context.Background(), own, "va"))
			require.NoError(t, links.Wait(context.Background(), peer, "vb"))
		}
		start()
		u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: netip.AddrPortFrom(own, 30490), Interface: c.iface})
		require.NoError(t, err)
		groups := endpoint.NewGroups(endpoint.UDPConfig{Local: netip.AddrPortFrom(own, 30490), Interface: c.iface}, ignore)
		require.NoError(t, groups.Join(group))
		far := func(round string) (*endpoint.UDP, *endpoint.UDP, <-chan datagram) {
			from, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: netip.AddrPortFrom(peer, 30490), Interface: "vb"})
			require.NoError(t, err, round)
			in, err := endpoint.ListenMulticast(group, endpoint.UDPConfig{Local: netip.AddrPortFrom(peer, 30490), Interface: "vb"})
			require.NoError(t, err)
			ch := make(chan datagram, 64)
			in.Serve(func(from netip.AddrPort, b []byte) { ch <- datagram{from, append([]byte(nil), b...)} })
			return from, in, ch
		}
		both := func(round string) {
			from, in, ch := far(round)
			require.Eventually(t, func() bool { // until the interface works
				return from.Send(group, []byte(round)) == nil && u.Send(group, []byte(round)) == nil && len(ch) >= 2 && groups.Stats().Received >= 2
			}, patience, 20*time.Millisecond, "%s: %s", c.group, round)
			require.NoError(t, from.Close())
			require.NoError(t, in.Close())
		}
		both("before")
		ip(t, "link del va")
		absent := make(chan endpoint.Presence, 8)
		now, stop := links.Follow(own, "va", func(p endpoint.Presence) { absent <- p })
		if now != endpoint.Absent {
			until(t, absent, endpoint.Absent)
		}
		stop()
		require.Error(t, groups.Rejoin())
		received := groups.Stats().Received
		start()
		require.NoError(t, groups.Rejoin())
		require.NoError(t, u.Rejoin())
		both("after")
		require.Greater(t, groups.Stats().Received, received)
		require.NoError(t, u.Close())
		require.NoError(t, groups.Close())
		ip(t, "link del va")
	}
}

func ignore(netip.AddrPort, netip.AddrPort, []byte) {}
