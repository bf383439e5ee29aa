package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"carisma.dev/gateway/interop/proc"
	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
)

// Footprint is what a program takes at a moment.
type Footprint struct {
	PID         int `json:"pid"`
	AnonKiB     int `json:"anon_kib"` // anonymous memory
	Descriptors int `json:"descriptors"`
	Goroutines  int `json:"goroutines,omitempty"` // of a gateway
}

// programs are those whose footprint is watched.
func (g *Rig) programs() []string {
	var names []string
	for _, h := range g.runner.Vehicle().HPCs() {
		names = append(names, h.Name+"/gateway", h.Name+"/envoy")
		if h.Role == config.Central {
			names = append(names, h.Name+"/control-plane")
		}
	}
	return names
}

func (g *Rig) footprints(ctx context.Context) (map[string]Footprint, error) {
	all := map[string]Footprint{}
	for _, name := range g.programs() {
		pid, err := g.pid(name)
		if err != nil {
			return nil, err
		}
		f := Footprint{PID: pid}
		if _, f.AnonKiB, err = proc.Memory(pid); err != nil {
			return nil, err
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return nil, err
		}
		f.Descriptors = len(fds)
		if host, ok := strings.CutSuffix(name, "/gateway"); ok {
			st, err := gateway.FetchStatus(ctx, g.state(host))
			if err != nil {
				return nil, err
			}
			f.Goroutines = st.Goroutines
		}
		all[name] = f
	}
	return all, nil
}

// peaks samples the anonymous memory of programs until the function it returns is
// called, which gives the most that each had, in KiB. One that does not run is
// passed over.
func (g *Rig) peaks(ctx context.Context, programs []string) func() map[string]int {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan map[string]int)
	go func() {
		most := map[string]int{}
		for {
			for _, name := range programs {
				if pid, err := g.pid(name); err == nil {
					if _, kib, err := proc.Memory(pid); err == nil {
						most[name] = max(most[name], kib)
					}
				}
			}
			if wait.For(ctx, 2*lookInterval) != nil {
				result <- most
				return
			}
		}
	}()
	return func() map[string]int {
		cancel()
		return <-result
	}
}

// grown compares footprints of the same programs, a process of its own each or
// not, long after one another: nothing may pile up in any of them. Nodes whose roles
// move are judged together, each kind of program: who served the ECU before need not
// be who serves it now.
func grown(before, after map[string]Footprint, moving []string) (broken []string) {
	type sum struct{ before, after, slack Footprint }
	slack := Footprint{AnonKiB: slackKiB, Descriptors: slackDescriptors, Goroutines: slackGoroutines}
	plus := func(a, b int) int { return a + b }
	sums := map[string]sum{}
	for name, a := range after {
		of := name
		if host, kind, _ := strings.Cut(name, "/"); slices.Contains(moving, host) {
			of = strings.Join(moving, " and ") + "/" + kind
		}
		s := sums[of]
		sums[of] = sum{s.before.with(before[name], plus), s.after.with(a, plus), s.slack.with(slack, plus)}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		b, a, slack := sums[name].before, sums[name].after, sums[name].slack
		if a.Descriptors > b.Descriptors+slack.Descriptors {
			broken = append(broken, fmt.Sprintf("%s has %d descriptors, it had %d", name, a.Descriptors, b.Descriptors))
		}
		if a.Goroutines > b.Goroutines+slack.Goroutines {
			broken = append(broken, fmt.Sprintf("%s has %d goroutines, it had %d", name, a.Goroutines, b.Goroutines))
		}
		if a.AnonKiB > b.AnonKiB+slack.AnonKiB {
			broken = append(broken, fmt.Sprintf("%s has %d KiB of anonymous memory, it had %d", name, a.AnonKiB, b.AnonKiB))
		}
	}
	return broken
}

// What may be more after than before: calls and streams under way differ from
// moment to moment, Go's heap from collection to collection, and Envoy keeps the
// buffers of its worst moment.
const (
	slackDescriptors = 6
	slackGoroutines  = 16
	slackKiB         = 48 << 10
)
