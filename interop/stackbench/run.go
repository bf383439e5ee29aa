package stackbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/interop/aims"
	"carisma.dev/gateway/interop/cores"
	"carisma.dev/gateway/interop/wait"
)

// Options say what is measured and with which programs.
type Options struct {
	Root     string // of the checkout
	Vsomeip  string // directory of the programs on vsomeip
	Dir      string // for logs
	Core     int    // for what is pinned
	Rounds   int    // of each measurement, in turn
	Calls    int    // in each round
	Idle     int    // seconds that an idle process is watched
	Progress io.Writer
	Only     []string // some of Parts; none: all
	Profiles string   // directory for CPU profiles of our programs; empty: none
}

// Row is a measurement of our stack beside others, in medians over the rounds.
type Row struct {
	What    string  `json:"what"`
	Unit    string  `json:"unit"`
	Ours    float64 `json:"ours"`
	Floor   float64 `json:"go_floor,omitempty"`
	CFloor  float64 `json:"c_floor,omitempty"`
	Vsomeip float64 `json:"vsomeip,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// Result is what a run measured.
type Result struct {
	Rows   []Row     `json:"rows"`
	Aims   aims.Aims `json:"aims"`
	Micros []Micro   `json:"micros"`
}

// measured is one side of a row.
type measured struct {
	name   string
	run    func(ctx context.Context) (float64, error)
	values []float64
}

func (m *measured) median() float64 {
	sorted := slices.Sorted(slices.Values(m.values))
	return sorted[len(sorted)/2]
}

// patience bounds one measurement.
const patience = 30 * time.Second

// collected says how messages share datagrams.
const collected = "`MessageConfig.Collect`"

// interleave measures each in turn, in rounds, so that what else the machine does
// concerns all of them.
func (w *world) interleave(ctx context.Context, what string, all ...*measured) error {
	return w.rounds(ctx, w.o.Rounds, what, all...)
}

func (w *world) rounds(ctx context.Context, rounds int, what string, all ...*measured) error {
	for round := range rounds {
		for _, m := range all {
			one, cancel := context.WithTimeout(ctx, patience)
			v, err := m.run(one)
			cancel()
			if err != nil {
				return fmt.Errorf("%s, %s: %w", what, m.name, err)
			}
			m.values = append(m.values, v)
			fmt.Fprintf(w.o.Progress, "round %d  %-40s %-26s %10.1f\n", round+1, what, m.name, v)
		}
	}
	return nil
}

// Run measures everything.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	w, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.buildFloor(ctx); err != nil {
		return nil, err
	}
	stop, err := w.profile()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	r := &Result{}
	for _, p := range parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		if err := p.run(w, ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// parts are what can be measured by itself.
var parts = []struct {
	name string
	run  func(*world, context.Context, *Result) error
}{
	{"call", (*world).pinned},
	{"calls", (*world).concurrent},
	{"events", (*world).events},
	{"starts", (*world).coming},
	{"idle", (*world).idling},
	{"bytes", (*world).onBytes},
}

// Parts returns the names of what can be measured by itself.
func Parts() (names []string) {
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func (*world) onBytes(_ context.Context, r *Result) (err error) {
	r.Micros, err = micros()
	return err
}

func (r *Result) row(row Row) { r.Rows = append(r.Rows, row) }

// servers runs the programs that answer calls, while f runs.
func (w *world) servers(ctx context.Context, size string, f func() error) error {
	for _, s := range []server{
		w.own(), w.vsomeipService(size), {program: "bench-peer", args: []string{"echo", echoAddress}}, w.cEcho(),
	} {
		p, err := s.run(ctx, w)
		if err != nil {
			return err
		}
		defer p.end()
	}
	if err := wait.For(ctx, settle); err != nil { // a bare echo tells nobody that it is there
		return err
	}
	return f()
}

func (w *world) pinned(ctx context.Context, r *Result) error {
	release, err := cores.Pin(w.o.Core)
	if err != nil {
		return err
	}
	const what = "call, 8 B, UDP, all on one core"
	own := &measured{name: "ours", run: func(ctx context.Context) (float64, error) { return w.ownCalls(ctx, Own, w.serial) }}
	floor := &measured{name: "bare UDP echo in Go", run: w.bareSerial}
	bare := &measured{name: "bare UDP echo in C", run: w.cSerial}
	vs := &measured{name: "vsomeip", run: w.vsomeipSerial}
	err = w.servers(ctx, "8", func() error { return w.interleave(ctx, what, vs, bare, floor, own) })
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	r.row(Row{What: what + ", p50", Unit: "µs", Ours: own.median(), Floor: floor.median(), CFloor: bare.median(), Vsomeip: vs.median()})
	r.Aims.AtMost("call, over vsomeip's", own.median()/vs.median(), 0.25)
	r.Aims.AtMost("call, over a bare UDP echo", own.median()/floor.median(), 2)
	return nil
}

func (w *world) concurrent(ctx context.Context, r *Result) error {
	const what = "calls, 32 in flight"
	own := &measured{name: "ours", run: func(ctx context.Context) (float64, error) { return w.ownCalls(ctx, Own, w.together) }}
	shared := &measured{name: "ours, shared datagrams", run: func(ctx context.Context) (float64, error) {
		return w.ownCalls(ctx, Shared, w.together)
	}}
	floor := &measured{name: "bare UDP echo in Go", run: w.bareTogether}
	bare := &measured{name: "bare UDP echo in C", run: w.cTogether}
	vs := &measured{name: "vsomeip", run: w.vsomeipTogether}
	if err := w.servers(ctx, "8", func() error { return w.interleave(ctx, what, vs, bare, floor, own, shared) }); err != nil {
		return err
	}
	r.row(Row{What: what, Unit: "calls/s", Ours: own.median(), Floor: floor.median(), CFloor: bare.median(), Vsomeip: vs.median()})
	r.row(Row{
		What: what + ", several messages a datagram", Unit: "calls/s", Ours: shared.median(), Floor: floor.median(), CFloor: bare.median(),
		Vsomeip: vs.median(), Note: collected,
	})
	r.Aims.AtLeast("calls in flight, over a bare UDP echo", own.median()/floor.median(), 0.7)
	r.Aims.AtLeast("calls in flight, several messages a datagram, over vsomeip's", shared.median()/vs.median(), 10)
	return nil
}

func (w *world) coming(ctx context.Context, r *Result) error {
	var available, event [2]*measured
	servers := [2]server{{instance: Own, program: "bench-idle"}, w.vsomeipService("8")}
	for i, s := range servers {
		s.env = []string{delayVariable + "=5"}
		event[i] = &measured{}
		available[i] = &measured{name: []string{"ours", "vsomeip"}[i], run: func(ctx context.Context) (float64, error) {
			t, err := w.starts(ctx, s)
			event[i].values = append(event[i].values, t.Event)
			return t.Available, err
		}}
	}
	fast := &measured{name: "ours, no random delays", run: w.fastStart}
	// Starts scatter, so it takes more rounds.
	if err := w.rounds(ctx, 7*w.o.Rounds, "service start → available", available[0], available[1], fast); err != nil {
		return err
	}
	r.row(Row{What: "process start → available", Unit: "ms", Ours: available[0].median(), Vsomeip: available[1].median(), Note: "initial delay 5 ms"})
	r.row(Row{What: "kill and restart → first event", Unit: "ms", Ours: event[0].median(), Vsomeip: event[1].median(), Note: "initial delay 5 ms"})
	r.row(Row{What: "offer → available, no random delays", Unit: "ms", Ours: fast.median()})
	r.Aims.AtMost("process start → available, over vsomeip's", available[0].median()/available[1].median(), 1)
	r.Aims.AtMost("kill and restart → first event, over vsomeip's", event[0].median()/event[1].median(), 1)
	r.Aims.AtMost("offer → available, ms", fast.median(), 20)
	return nil
}

// shortIdle is how many seconds the idle processes are watched that only have something
// to compare with.
const shortIdle = 8

func (w *world) idling(ctx context.Context, r *Result) error {
	// Side by side: they do not hear each other.
	side := [...]server{
		{program: "bench-idle"},
		{program: "bench-peer", args: []string{
			"beat", netip.AddrPortFrom(serverAddr, 0).String(), netip.AddrPortFrom(group, beatPort).String(),
		}},
		{program: w.floor, args: []string{"beat", serverAddr.String(), fmt.Sprint(cFloorPort), group.String()}},
	}
	var by [len(side)]Idle
	var failed [len(side)]error
	var work sync.WaitGroup
	for i, s := range side {
		work.Go(func() { by[i], failed[i] = w.idle(ctx, w.o.Idle, s) })
	}
	work.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	one, goBeat, cBeat := by[0], by[1], by[2]
	theirs, err := w.idle(ctx, shortIdle, w.vsomeipService("8"))
	if err != nil {
		return err
	}
	many, err := w.idle(ctx, shortIdle, server{program: "bench-peer", args: []string{"offer", fmt.Sprint(offers)}})
	if err != nil {
		return err
	}
	b, err := burst()
	if err != nil {
		return err
	}
	r.row(Row{What: "idle process with one service: RSS", Unit: "MiB", Ours: one.RSS, Vsomeip: theirs.RSS})
	r.row(Row{
		What: "idle process with one service: voluntary context switches, offers once a second", Unit: "1/s",
		Ours: one.Switches, Floor: goBeat.Switches, CFloor: cBeat.Switches, Vsomeip: theirs.Switches,
		Note: fmt.Sprintf("over %d s", w.o.Idle),
	})
	r.row(Row{What: "idle process with 1 000 services: CPU", Unit: "%", Ours: many.CPU})
	r.row(Row{What: "1 000 offers of a peer: handled in", Unit: "ms", Ours: b.Milliseconds})
	r.row(Row{What: "state of an instance that a peer offers", Unit: "B", Ours: b.Bytes})
	r.row(Row{What: "state of an instance that we offer", Unit: "B", Ours: b.OwnBytes})
	r.Aims.AtMost("idle RSS, MiB", one.RSS, 8)
	r.Aims.AtMost("idle voluntary context switches for each SD cycle", one.Switches, switchesPerCycle)
	r.Aims.AtMost("1 000 services offered: idle CPU, %", many.CPU, 0.5)
	r.Aims.AtMost("1 000 offers of a peer, ms", b.Milliseconds, 20)
	r.Aims.AtMost("state of an instance, B", max(b.Bytes, b.OwnBytes), 2048)
	return nil
}

// switchesPerCycle is what a cycle of service discovery needs: a timer that sends and
// the group's socket that hears our own offer, on a thread each, and twice that for
// the hand-over between them.
const switchesPerCycle = 4
