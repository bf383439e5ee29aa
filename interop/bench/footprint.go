package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
func (o Options) footprint(ctx context.Context, r *run.Runner, result *Result) error {
	c := &clients{r: r, effort: effort{calls: 5 * o.Calls}}
	far := c.dial(center, r.Egress(center).String())
	defer func() { _ = c.close() }()
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
	if err := wait(ctx, restTime); err != nil {
		return err
	}
	began, before := time.Now(), map[int]time.Duration{}
	for _, p := range pids {
		if before[p.pid], err = cpu(p.pid); err != nil {
			return err
		}
	}
	if err := wait(ctx, idleTime); err != nil {
		return err
	}
	var all []Footprint
	for _, p := range pids {
		after, err := cpu(p.pid)
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
			result.atMost(f.Program+", anonymous memory, MiB", f.Anon, 20)
			result.atMost(f.Program+", idle CPU, %", f.CPU, 0.5)
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
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		to := map[string]*float64{"VmRSS": &rss, "RssAnon": &anon}[key]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			return 0, 0, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		*to = kib / 1024
	}
	return rss, anon, nil
}

// cpu returns the processor time of a process so far. That of threads which ended is
// missing; an idle process ends none.
func cpu(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, t := range tasks {
		data, err := os.ReadFile(t)
		if os.IsNotExist(err) {
			continue
		}
		var ran int64
		if err == nil {
			_, err = fmt.Sscan(string(data), &ran)
		}
		if err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}
