package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/interop/wait"
)

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
