package faults

import (
	"context"
	"sync"

	"carisma.dev/gateway/interop/faults/record"
)

// Rate is what an extra load did.
type Rate struct {
	Load      string  `json:"load"`
	Calls     int     `json:"calls"`
	Failed    int     `json:"failed"`
	PerSecond float64 `json:"per_second"`
}

// startExtra starts the extra loads of a scenario and waits until they are served.
// end takes them away again.
func (g *Rig) startExtra(ctx context.Context, sc *Scenario) (end func(), err error) {
	steady := len(g.loads)
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	end = func() {
		cancel()
		work.Wait()
		g.loads = g.loads[:steady]
	}
	for _, name := range sc.With {
		l := &loading{Load: g.suite.load(name)}
		conn, err := g.conn(l.Host)
		if err != nil {
			return end, err
		}
		g.loads = append(g.loads, l)
		work.Go(func() { l.run(ctx, conn) })
	}
	if len(sc.With) == 0 {
		return end, nil
	}
	return end, g.calm(ctx, calmAfter)
}

// rates sums up the extra loads of calls.
func (g *Rig) rates(t times) (rates []Rate) {
	for _, l := range g.loads {
		if !l.Extra || l.stream() {
			continue
		}
		l.mu.Lock()
		r := Rate{Load: l.Name, Calls: len(l.calls), PerSecond: float64(len(l.calls)) / t.ended.Sub(t.began).Seconds()}
		for _, c := range l.calls {
			if c.Code != record.OK {
				r.Failed++
			}
		}
		l.mu.Unlock()
		rates = append(rates, r)
	}
	return rates
}
