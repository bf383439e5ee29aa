package sd_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// offersOf returns the messages in which a peer offers n instances, in each of
// several cycles.
func offersOf(tb testing.TB, n, cycles int) [][][]byte {
	tb.Helper()
	c := testConfig()
	c.Address = server.Addr()
	peer, err := sd.New(c, rand.New(rand.NewPCG(1, 1)))
	require.NoError(tb, err)
	now := time.Unix(1000, 0)
	for i := range n {
		_, err := peer.Offer(now, sd.OfferSpec{
			Key:       someip.InstanceKey{Service: 0x1000 + uint16(i), Instance: 1, Major: 1},
			Endpoints: sd.Endpoints{UDP: netip.AddrPortFrom(server.Addr(), 3000+uint16(i%10))},
		})
		require.NoError(tb, err)
	}
	all := make([][][]byte, cycles)
	for i := range all {
		at, ok := peer.Next()
		require.True(tb, ok)
		for _, a := range peer.Tick(at) {
			all[i] = append(all[i], a.(sd.Send).Data)
		}
	}
	return all
}

// The cycle of a peer, in which nothing is new, allocates nothing.
func TestRefreshDoesNotAllocate(t *testing.T) {
	cycles := offersOf(t, 200, 30)
	b := newBench(t)
	i := 0
	refresh := func() {
		for _, data := range cycles[i] {
			b.m.Receive(b.now, server, true, data)
		}
		i++
	}
	refresh()
	refresh()
	require.Zero(t, testing.AllocsPerRun(20, refresh))
	require.Zero(t, b.m.Stats().Reboots)
	require.Len(t, availableNow(b), 200)
}

// BenchmarkBurst is a burst of 1000 offers, new and as a refresh, and the state
// that remains of one.
func BenchmarkBurst(b *testing.B) {
	cycles := offersOf(b, 1000, 2)
	for name, from := range map[string]int{"new": 0, "refresh": 1} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var held float64
			for b.Loop() {
				b.StopTimer()
				c := testConfig()
				c.DuplicateWindow = 0
				before := heap()
				m, err := sd.New(c, rand.New(rand.NewPCG(1, 1)))
				require.NoError(b, err)
				now := time.Unix(1000, 0)
				for _, cycle := range cycles[:from] {
					for _, data := range cycle {
						m.Receive(now, server, true, data)
					}
				}
				b.StartTimer()
				for _, data := range cycles[from] {
					m.Receive(now, server, true, data)
				}
				b.StopTimer()
				held = float64(heap()-before) / 1000
				runtime.KeepAlive(m)
				b.StartTimer()
			}
			b.ReportMetric(held, "B/offer")
		})
	}
}

// BenchmarkCycle is one cycle of 1000 offers of our own.
func BenchmarkCycle(b *testing.B) {
	c := testConfig()
	m, err := sd.New(c, rand.New(rand.NewPCG(1, 1)))
	require.NoError(b, err)
	before, now := heap(), time.Unix(1000, 0)
	for i := range 1000 {
		_, err := m.Offer(now, sd.OfferSpec{
			Key:         someip.InstanceKey{Service: 0x1000 + uint16(i), Instance: 1, Major: 1},
			Endpoints:   sd.Endpoints{UDP: ap(fmt.Sprintf("10.0.0.1:%d", 3000+i%10))},
			Eventgroups: []sd.Eventgroup{{ID: 1, UDP: true}},
		})
		require.NoError(b, err)
	}
	held := heap() - before
	for range 3 {
		at, _ := m.Next()
		m.Tick(at)
	}
	b.ReportAllocs()
	for b.Loop() {
		at, _ := m.Next()
		m.Tick(at)
	}
	b.ReportMetric(float64(held)/1000, "B/offer")
}

// heap returns the bytes in use.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
