package lossy_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/lossy"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func side(d *someiptest.Domain) lossy.Side {
	return lossy.Side{Subnet: netip.PrefixFrom(d.Addr(0), 24), Group: d.Group, Port: d.Port}
}

// relayed starts a relay between two domains.
func relayed(tb testing.TB, seed uint64) (*lossy.Relay, [2]*someiptest.Domain) {
	tb.Helper()
	d := [2]*someiptest.Domain{someiptest.NewDomain(tb), someiptest.NewDomain(tb)}
	r, err := lossy.Start(side(d[0]), side(d[1]), seed)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	return r, d
}

var offer = sd.Entry{Type: sd.OfferService, Service: 1, Instance: 1, Major: 1, TTL: 3}

// world is a relay, with a socket on each side: what b sends to "a" reaches a.
type world struct {
	*lossy.Relay

	a, b *net.UDPConn
	to   netip.AddrPort // what stands for a on the side of b
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	r, d := relayed(t, seed)
	listen := func(at netip.AddrPort) *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
		return c
	}
	w := &world{Relay: r, a: listen(d[0].AddrPort(1, 0)), b: listen(d[1].AddrPort(2, 0))}

	// An offer of a on the one group is one of what stands for it on the other.
	heard := make(chan sd.Message, 1)
	group, err := endpoint.ListenMulticast(netip.AddrPortFrom(d[1].Group, d[1].Port),
		endpoint.UDPConfig{Local: d[1].AddrPort(2, 0)})
	require.NoError(t, err)
	t.Cleanup(func() { group.Close() })
	group.Serve(func(from netip.AddrPort, b []byte) {
		m, rest, err := sd.Parse(append([]byte(nil), b...))
		if from == d[1].SD(1) && err == nil && len(rest) == 0 {
			heard <- m
		}
	})
	discovery, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: d[0].SD(1)})
	require.NoError(t, err)
	t.Cleanup(func() { discovery.Close() })
	at := w.a.LocalAddr().(*net.UDPAddr).AddrPort()
	m := sd.Message{Session: 7, Flags: sd.FlagReboot | sd.FlagUnicast, Entries: []sd.Entry{offer}}
	m.Entries[0].Count1, m.Options = 1, []sd.Option{sd.EndpointOption(at, sd.UDP)}
	b, err := m.Append(nil)
	require.NoError(t, err)
	require.NoError(t, discovery.Send(netip.AddrPortFrom(d[0].Group, d[0].Port), b))
	select {
	case got := <-heard:
		w.to = d[1].AddrPort(1, at.Port())
		m.Options[0].Endpoint = w.to
		require.Equal(t, m, got)
	case <-time.After(patience):
		require.FailNow(t, "the offer was not heard")
	}
	return w
}

// send sends numbers from b to a, and returns what arrived. All of them wait in the
// socket of a before the first is read, so n is small.
func (w *world) send(t *testing.T, n int) (arrived []string) {
	t.Helper()
	for i := range n {
		_, err := w.b.WriteToUDPAddrPort(fmt.Appendf(nil, "%04d", i), w.to)
		require.NoError(t, err)
	}
	var c lossy.Counts
	require.Eventually(t, func() bool {
		c = w.Stats().Data(1)
		return c.Received == uint64(n) && c.Waiting == 0
	}, patience, time.Millisecond)
	b := make([]byte, 100)
	for range c.Forwarded {
		size, _, err := w.a.ReadFromUDPAddrPort(b)
		require.NoError(t, err)
		arrived = append(arrived, string(b[:size]))
	}
	require.Equal(t, c.Received+c.Duplicated, c.Forwarded+c.Lost())
	return arrived
}

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%04d", i))
	}
	return all
}

func TestCarriesBothWays(t *testing.T) {
	w := newWorld(t, 1)
	_, err := w.b.WriteToUDPAddrPort([]byte("there"), w.to)
	require.NoError(t, err)
	b := make([]byte, 100)
	n, from, err := w.a.ReadFromUDPAddrPort(b)
	require.NoError(t, err)
	require.Equal(t, "there", string(b[:n]))
	require.Equal(t, w.b.LocalAddr().(*net.UDPAddr).Port, int(from.Port()))
	_, err = w.a.WriteToUDPAddrPort([]byte("and back"), from)
	require.NoError(t, err)
	n, from, err = w.b.ReadFromUDPAddrPort(b)
	require.NoError(t, err)
	require.Equal(t, "and back", string(b[:n]))
	require.Equal(t, w.to, from)
	s := w.Stats()
	require.Equal(t, lossy.Counts{Received: 1, Forwarded: 1}, s.Data(0))
	require.Equal(t, lossy.Counts{Received: 1, Forwarded: 1}, s.Data(1))
	require.Equal(t, lossy.Counts{Received: 1, Forwarded: 1}, s.SD(0))
}

func TestFaults(t *testing.T) {
	const n = 150
	for name, c := range map[string]struct {
		rates lossy.Rates
		check func(t *testing.T, got []string, c lossy.Counts)
	}{
		"none": {check: func(t *testing.T, got []string, _ lossy.Counts) {
			t.Helper()
			require.Equal(t, numbers(n), got)
		}},
		"drop": {lossy.Rates{Drop: 0.2}, func(t *testing.T, got []string, c lossy.Counts) {
			t.Helper()
			require.InDelta(t, 0.2*n, c.Dropped, 30)
			require.Len(t, got, n-int(c.Dropped))
			require.IsIncreasing(t, got)
		}},
		"duplicate": {lossy.Rates{Duplicate: 0.2}, func(t *testing.T, got []string, c lossy.Counts) {
			t.Helper()
			require.InDelta(t, 0.2*n, c.Duplicated, 30)
			require.IsNonDecreasing(t, got)
		}},
		"reorder": {lossy.Rates{Reorder: 0.2}, func(t *testing.T, got []string, c lossy.Counts) {
			t.Helper()
			require.InDelta(t, 0.2*n, c.HeldBack, 30)
			require.NotEqual(t, numbers(n), got)
			require.ElementsMatch(t, numbers(n), got)
		}},
		"corrupt": {lossy.Rates{Corrupt: 0.2}, func(t *testing.T, got []string, c lossy.Counts) {
			t.Helper()
			wrong := 0
			for i, text := range numbers(n) {
				if got[i] != text {
					wrong++
				}
			}
			require.EqualValues(t, c.Corrupted, wrong)
			require.InDelta(t, 0.2*n, wrong, 30)
		}},
		"delay": {lossy.Rates{Delay: 2 * time.Millisecond, Jitter: time.Millisecond}, func(t *testing.T, got []string, _ lossy.Counts) {
			t.Helper()
			require.ElementsMatch(t, numbers(n), got)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.SetFaults(lossy.Faults{Data: c.rates})
			c.check(t, w.send(t, n), w.Stats().Data(1))
		})
	}
}

func TestSeedRepeats(t *testing.T) {
	run := func(seed uint64) []string {
		w := newWorld(t, seed)
		w.SetFaults(lossy.Faults{Data: lossy.Rates{Drop: 0.3, Corrupt: 0.1, Duplicate: 0.1}})
		return w.send(t, 150)
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

func TestSides(t *testing.T) {
	good := lossy.Side{Subnet: netip.MustParsePrefix("127.9.1.0/24"), Group: netip.MustParseAddr("239.9.9.9"), Port: 30490}
	foreign := good
	foreign.Subnet = netip.MustParsePrefix("10.0.0.0/24")
	for name, b := range map[string]lossy.Side{"the same": good, "no loopback": foreign, "nothing": {}} {
		_, err := lossy.Start(good, b, 1)
		require.Error(t, err, name)
	}
}
