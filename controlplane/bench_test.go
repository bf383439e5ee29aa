package controlplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// BenchmarkEnvoyChange measures the time from a change in the registry to its
// acknowledgement by both Envoys: of an endpoint, and of a service that is added
// and removed.
func BenchmarkEnvoyChange(b *testing.B) {
	for _, services := range []int{2, 500} {
		p := startPlane(b, b.TempDir())
		center, rear := p.join(b, "center", "127.0.0.1"), p.join(b, "rear", "127.0.0.2")
		center.startEnvoy()
		rear.startEnvoy()
		center.sync()
		var all []*meshv1.ServiceInstance
		for i := range services {
			all = append(all, native(climate, fmt.Sprint("i", i), "127.0.0.1:5000"))
		}
		rear.sync(all...)
		center.acked()
		rear.acked()
		generation := uint64(1)
		b.Run(fmt.Sprintf("endpoint/services=%d", services), func(b *testing.B) {
			measure(b, p, func() {
				generation++
				s := native(climate, "i0", fmt.Sprint("127.0.0.1:", 1000+generation%60000))
				if generation%2 == 0 {
					s = down(s, "away") // so that both proxies have to hear of it
				}
				s.Generation = generation
				rear.set(s)
			})
		})
		b.Run(fmt.Sprintf("service/services=%d", services), func(b *testing.B) {
			added := false
			measure(b, p, func() {
				if added = !added; added {
					rear.set(native(climate, "more", "127.0.0.1:5000"))
				} else {
					rear.remove("more." + lower(climate))
				}
			})
		})
		p.stop()
	}
}

// measure waits after each change until both proxies have acknowledged all.
func measure(b *testing.B, p *plane, change func()) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		change()
		version := fmt.Sprint(p.registry.Snapshot().Version)
		for !p.settledAt(version) {
			time.Sleep(50 * time.Microsecond)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// settledAt reports whether every proxy acknowledged the version in some type and
// owes no acknowledgement.
func (p *plane) settledAt(version string) bool {
	for _, proxy := range p.cache.Proxies() {
		reached := false
		for _, typ := range proxy.Types {
			if typ.Sent != typ.Acked || typ.AckedAt.Before(typ.SentAt) {
				return false
			}
			reached = reached || typ.Acked == version
		}
		if !reached {
			return false
		}
	}
	return true
}
