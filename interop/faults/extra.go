package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/interop/wait"
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

// Share says how the calls of loads were shared by programs.
type Share struct {
	Loads    string    `json:"loads"`
	Calls    int       `json:"calls"`
	Percents []float64 `json:"percents"`
}

// balanced lets time pass and judges who answered meanwhile. The loads are judged
// together: a proxy gives each program its turn whoever calls, and two loads with
// the same beat take turns, too.
func (g *Rig) balanced(ctx context.Context, b *Balanced, r *Result) error {
	from := time.Now()
	if err := wait.For(ctx, b.For); err != nil {
		return err
	}
	answered := map[uint32]int{}
	for _, l := range g.loads {
		if slices.Contains(b.Loads, l.Name) {
			l.answered(from, answered)
		}
	}
	s := Share{Loads: strings.Join(b.Loads, ", ")}
	for _, n := range answered {
		s.Calls += n
	}
	for _, n := range answered {
		s.Percents = append(s.Percents, 100*float64(n)/float64(s.Calls))
	}
	slices.Sort(s.Percents)
	r.Shares = append(r.Shares, s)
	even := 100 / float64(b.Programs)
	if len(s.Percents) != b.Programs || slices.ContainsFunc(s.Percents, func(p float64) bool { return p < even-b.Percent || p > even+b.Percent }) {
		return fmt.Errorf("the calls of %s are not shared evenly by %d: %.1f", s.Loads, b.Programs, s.Percents)
	}
	return nil
}

// answered counts the answers to calls made since a time by who gave them.
func (l *loading) answered(from time.Time, by map[uint32]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.Began.After(from) && c.Code == record.OK {
			by[c.Program]++
		}
	}
}
