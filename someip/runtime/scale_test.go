package runtime_test

import (
	stdruntime "runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

const instances = 5000

// offerMany offers instances of as many services, on one port.
func offerMany(tb testing.TB, n *runtime.Network) {
	tb.Helper()
	for i := range uint16(instances) {
		_, err := n.Offer(runtime.ServiceConfig{
			Service: 1 + i, Instance: 1, Major: 1, UDPPort: 31000,
			Events: []runtime.EventConfig{{ID: event, Eventgroups: []uint16{group}, Field: true}},
		})
		require.NoError(tb, err)
	}
}

// patientOffers offers once a second, with lifetimes that a loaded machine keeps.
func patientOffers(c *runtime.NetworkConfig) {
	c.SD.CyclicOfferDelay, c.SD.TTL, c.SD.SubscribeTTL = time.Second, 60*time.Second, 60*time.Second
	c.ClientIDs = runtime.Range{First: 0x1000, Last: 0x1000 + instances}
}

// rareOffers leaves a loaded machine the time to take one cycle of offers before the
// next one: with all of them each second, each answered by a Subscribe, it never
// catches up.
func rareOffers(c *runtime.NetworkConfig) {
	patientOffers(c)
	c.SD.CyclicOfferDelay, c.SD.TTL, c.SD.SubscribeTTL = 5*time.Second, time.Hour, time.Hour
}

// All instances of one host are seen, subscribed to and left by another.
func TestManyInstances(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of instances")
	}
	d := someiptest.NewDomain(t)
	there, here := d.Start(1, rareOffers), d.Start(2, rareOffers)
	up := make(chan runtime.Availability, 2*instances)
	require.NoError(t, here.Observe(t.Context(), everything, func(a runtime.Availability) { up <- a }))
	offerMany(t, there)
	active := make(chan runtime.SubscriptionStatus, 4*instances)
	for range instances {
		a := receive(t, up)
		require.True(t, a.Up)
		c, err := here.Client(a.Key)
		require.NoError(t, err)
		_, err = c.Subscribe(t.Context(), runtime.SubscribeConfig{
			Eventgroup: group, OnState: func(s runtime.SubscriptionStatus) { active <- s },
		})
		require.NoError(t, err)
	}
	for n := 0; n < instances; {
		if receive(t, active).State == runtime.SubscriptionActive {
			n++
		}
	}
}

// BenchmarkInstances is the time until all instances of one host are known to another,
// the memory that both take for one, and the processor time of a second with them.
func BenchmarkInstances(b *testing.B) {
	for b.Loop() {
		d := someiptest.NewDomain(b)
		there, here := d.Start(1, patientOffers), d.Start(2, patientOffers)
		up := make(chan struct{}, instances)
		require.NoError(b, here.Observe(b.Context(), everything, func(a runtime.Availability) {
			if a.Up {
				up <- struct{}{}
			}
		}))
		before := heap()
		begin := time.Now()
		offerMany(b, there)
		for range instances {
			<-up
		}
		b.ReportMetric(float64(time.Since(begin).Milliseconds()), "ms/all")
		b.ReportMetric(float64(heap()-before)/instances, "B/instance")
		cpu, since := cpuTime(b), time.Now()
		time.Sleep(3 * time.Second)
		b.ReportMetric(100*float64(cpuTime(b)-cpu)/float64(time.Since(since)), "cpu%")
	}
}

func heap() uint64 {
	stdruntime.GC()
	var m stdruntime.MemStats
	stdruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
