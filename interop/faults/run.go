package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"carisma.dev/gateway/mesh/gateway"
)

// Result is what one scenario gave.
type Result struct {
	Name  string  `json:"name"`
	Title string  `json:"title"`
	Note  string  `json:"note,omitempty"`
	Took  float64 `json:"took_s"`
	// Stalled is the longest time that the machine stood still, in milliseconds,
	// Pressure the share of the time in which some program waited for a core, and
	// Again how often the scenario was played again for that reason.
	Stalled  float64  `json:"stalled_ms"`
	Pressure float64  `json:"pressure"`
	Again    int      `json:"again,omitempty"`
	Seen     []*Seen  `json:"seen"`
	Broken   []string `json:"broken,omitempty"` // beside those of the loads
	// Connected is the time from the start of the control plane until every gateway
	// and proxy had it again, in milliseconds, and its bound.
	Connected      float64 `json:"connected_ms,omitempty"`
	ConnectedBound float64 `json:"connected_bound_ms,omitempty"`
	// Others are the loads that the fault does not concern: they saw nothing.
	Others Others `json:"others"`
	// Grown is the most anonymous memory that each bounded program took more than
	// before, in KiB.
	Grown map[string]int `json:"grown_kib,omitempty"`

	// Rates are of the extra loads, Shares of the loads that several programs answer.
	Rates  []Rate  `json:"rates,omitempty"`
	Shares []Share `json:"shares,omitempty"`

	unplayed bool // a step failed, or not all loads are served any more
}

// busy reports whether the machine was, so that a broken bound says nothing.
func (r *Result) busy() bool { return r.Stalled >= ms(stallLimit) || r.Pressure > maxPressure }

// Others sums up the loads that are not concerned and noticed nothing.
type Others struct {
	Loads int `json:"loads"`
	Calls int `json:"calls"`
	Items int `json:"items"`
}

func (o *Others) add(s *Seen) {
	o.Loads++
	if s.Stream {
		o.Items += s.Count
	} else {
		o.Calls += s.Count
	}
}

// Failures lists all that does not hold.
func (r *Result) Failures() []string {
	all := slices.Clone(r.Broken)
	for _, s := range r.Seen {
		for _, b := range s.Broken {
			all = append(all, s.Load+": "+b)
		}
	}
	return all
}

// calmAfter bounds how long a scenario may take to be over.
const calmAfter = 30 * time.Second

// Play plays a scenario. An error says that it could not be played to its end;
// bounds that do not hold are in the result.
func (g *Rig) Play(ctx context.Context, sc *Scenario) (*Result, error) {
	end, err := g.startExtra(ctx, sc)
	defer end()
	if err != nil {
		return &Result{Name: sc.Name, Title: sc.Title}, err
	}
	for _, l := range g.loads {
		l.forget()
	}
	stalled, waited := watchStalls(ctx), cpuPressure()
	r := &Result{Name: sc.Name, Title: sc.Title, Note: sc.Note}
	t := times{began: time.Now()}
	before, err := g.before(ctx, sc)
	if err != nil {
		stalled()
		return r, err
	}
	for i := range sc.Steps {
		if err := g.do(ctx, &sc.Steps[i], &t, r); err != nil {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: %v", sc.Steps[i].Pos, err))
			name, _ := sc.Steps[i].action()
			r.unplayed = r.unplayed || name != "connected" && name != "balanced" // nobody knows what it left
		}
	}
	if err := g.calm(ctx, calmAfter); err != nil {
		r.unplayed = true
		r.Broken = append(r.Broken, err.Error())
	}
	t.ended = time.Now()
	r.Stalled = ms(stalled())
	r.Pressure = float64(cpuPressure()-waited) / float64(t.ended.Sub(t.began))
	if t.fault.IsZero() {
		t.fault = t.began
	}
	if t.repair.Before(t.fault) {
		t.repair = t.fault
	}
	for _, l := range g.loads {
		seen := l.judge(t, g.concerned(sc, l.Name))
		if seen.Concerned || len(seen.Broken) > 0 {
			r.Seen = append(r.Seen, seen)
		} else {
			r.Others.add(seen)
		}
	}
	g.after(ctx, sc, before, r)
	r.Rates = g.rates(t)
	r.Took = t.ended.Sub(t.began).Seconds()
	return r, ctx.Err()
}

func (g *Rig) concerned(sc *Scenario, load string) *Concerned {
	named := func(name string) bool {
		base, role, _ := cutRole(name)
		return name == load || role != "" && base+g.roles[role] == load
	}
	for i := range sc.Concerned {
		if slices.ContainsFunc(sc.Concerned[i].Loads, named) {
			return &sc.Concerned[i]
		}
	}
	return nil
}

// state is what is compared before and after a scenario.
type state struct {
	nodes map[string]*gateway.Status
	foot  map[string]Footprint
	peaks func() map[string]int
}

func (g *Rig) before(ctx context.Context, sc *Scenario) (s state, err error) {
	if s.nodes, err = g.nodes(ctx); err != nil {
		return s, err
	}
	if s.foot, err = g.footprints(ctx); err != nil {
		return s, err
	}
	if len(sc.Memory) > 0 {
		var names []string
		for _, m := range sc.Memory {
			names = append(names, m.Program)
		}
		s.peaks = g.peaks(ctx, names)
	}
	return s, nil
}

// after judges what is no load's.
func (g *Rig) after(ctx context.Context, sc *Scenario, before state, r *Result) {
	if before.peaks != nil {
		r.Grown = map[string]int{}
		for name, kib := range before.peaks() {
			r.Grown[name] = max(0, kib-before.foot[name].AnonKiB)
		}
		for _, m := range sc.Memory {
			if r.Grown[m.Program] > m.Grows<<10 {
				r.Broken = append(r.Broken, fmt.Sprintf("%s grew by %d KiB, the bound is %d MiB", m.Program, r.Grown[m.Program], m.Grows))
			}
		}
	}
	foot, err := g.footprints(ctx)
	if err != nil {
		r.Broken = append(r.Broken, err.Error())
		return
	}
	if slices.Contains(sc.Same, Envoys) {
		for _, h := range g.runner.Vehicle().HPCs() {
			if name := h.Name + "/envoy"; foot[name].PID != before.foot[name].PID {
				r.Broken = append(r.Broken, name+" was started anew")
			}
		}
	}
	if slices.Contains(sc.Same, Identities) {
		nodes, err := g.nodes(ctx)
		if err != nil {
			r.Broken = append(r.Broken, err.Error())
		}
		for name, n := range nodes {
			if b := before.nodes[name]; n.NodeID != b.NodeID || n.Epoch < b.Epoch {
				r.Broken = append(r.Broken, fmt.Sprintf("%s is %s with epoch %d, it was %s with epoch %d", name, n.NodeID, n.Epoch, b.NodeID, b.Epoch))
			}
		}
	}
}

// Grown compares the footprint of the vehicle with an earlier one.
func (g *Rig) Grown(ctx context.Context, before map[string]Footprint) (now map[string]Footprint, broken []string, err error) {
	if now, err = g.footprints(ctx); err != nil {
		return nil, nil, err
	}
	return now, grown(before, now, slices.Sorted(maps.Values(g.roles))), nil
}
