package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"carisma.dev/gateway/interop/proc"
	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/vehicles/run"
)

// Footprint is what a program of an HPC takes while nothing happens.
type Footprint struct {
	Program string  `json:"program"`
	RSS     float64 `json:"rss_mib"`
	Anon    float64 `json:"anonymous_mib"`
	CPU     float64 `json:"cpu_percent"`
	// Loaded is the anonymous memory after calls and events as fast as they go.
	Loaded float64 `json:"anonymous_after_load_mib"`
}

// How long idle programs are watched, after they came to rest.
const (
	restTime = 5 * time.Second
	idleTime = 20 * time.Second
)

// footprint measures what gateways, control plane and Envoys take.
func (o Options) footprint(ctx context.Context, r *run.Runner, result *Result) (err error) {
	c := &clients{r: r, effort: effort{calls: 5 * o.Calls}}
	far := c.dial(center, r.Egress(center).String())
	defer func() { err = errors.Join(err, c.close()) }()
	if c.err != nil {
		return c.err
	}
	if err := retry(ctx, func(ctx context.Context) error { return far.call(ctx, "own") }); err != nil {
		return err
	}
	pids, err := programs(ctx, r)
	if err != nil {
		return err
	}
	if err := wait.For(ctx, restTime); err != nil {
		return err
	}
	began, before := time.Now(), map[int]time.Duration{}
	for _, p := range pids {
		if before[p.pid], err = proc.CPU(p.pid); err != nil {
			return err
		}
	}
	if err := wait.For(ctx, idleTime); err != nil {
		return err
	}
	var all []Footprint
	for _, p := range pids {
		after, err := proc.CPU(p.pid)
		if err != nil {
			return err
		}
		f := Footprint{Program: p.name, CPU: 100 * (after - before[p.pid]).Seconds() / time.Since(began).Seconds()}
		if f.RSS, f.Anon, err = memory(p.pid); err != nil {
			return err
		}
		all = append(all, f)
	}
	if _, err := far.echoes("own")(ctx); err != nil {
		return err
	}
	for i, p := range pids {
		f := &all[i]
		if _, f.Loaded, err = memory(p.pid); err != nil {
			return err
		}
		fmt.Fprintf(o.Progress, "%-22s RSS %5.1f MiB, anonymous %5.1f, %5.1f after a load, idle CPU %.2f %%\n", f.Program, f.RSS, f.Anon, f.Loaded, f.CPU)
		if strings.HasPrefix(f.Program, "gateway") {
			result.Aims.AtMost(f.Program+", anonymous memory, MiB", f.Anon, 20)
			result.Aims.AtMost(f.Program+", idle CPU, %", f.CPU, 0.5)
		}
	}
	result.Footprints = append(result.Footprints, all...)
	return nil
}

type program struct {
	name string
	pid  int
}

func programs(ctx context.Context, r *run.Runner) ([]program, error) {
	var all []program
	for _, name := range []string{"control-plane", "gateway"} {
		for _, host := range []string{center, rear} {
			p := r.Process(host + "/" + name)
			if p == nil {
				continue
			}
			pid, ok := p.PID()
			if !ok {
				return nil, fmt.Errorf("%s does not run", p.Name)
			}
			all = append(all, program{name + " of " + host, pid})
		}
	}
	for _, host := range []string{center, rear} {
		st, err := gateway.FetchStatus(ctx, filepath.Join(r.Dir(host), "state"))
		if err != nil {
			return nil, err
		}
		all = append(all, program{"Envoy of " + host, st.Envoy.PID})
	}
	return all, nil
}

// memory returns what a process has in memory, and how much of it is anonymous, in MiB.
func memory(pid int) (rss, anon float64, err error) {
	rssKiB, anonKiB, err := proc.Memory(pid)
	return float64(rssKiB) / 1024, float64(anonKiB) / 1024, err
}
