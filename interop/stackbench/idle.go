package stackbench

import (
	"context"
	"time"

	"carisma.dev/gateway/interop/proc"
	"carisma.dev/gateway/interop/wait"
)

// Idle is what a process costs that does nothing but be there.
type Idle struct {
	RSS      float64 `json:"rss_mib"`
	CPU      float64 `json:"cpu_percent"`
	Switches float64 `json:"voluntary_switches_per_s"`
}

// settle is how long a process has for its start, and for the repetitions of its offers.
const settle = 2 * time.Second

// idle measures a program for some seconds.
func (w *world) idle(ctx context.Context, seconds int, s server) (i Idle, err error) {
	p, err := s.run(ctx, w)
	if err != nil {
		return i, err
	}
	defer p.end()
	if err := wait.For(ctx, settle); err != nil {
		return i, err
	}
	before, err := usage(p.Process.Pid)
	if err != nil {
		return i, err
	}
	if err := wait.For(ctx, time.Duration(seconds)*time.Second); err != nil {
		return i, err
	}
	after, err := usage(p.Process.Pid)
	if err != nil {
		return i, err
	}
	return Idle{
		RSS:      float64(after.rssKiB) / 1024,
		CPU:      100 * (after.cpu - before.cpu).Seconds() / float64(seconds),
		Switches: float64(after.switches-before.switches) / float64(seconds),
	}, nil
}

// used is what a process has used so far.
type used struct {
	rssKiB, switches int
	cpu              time.Duration
}

// usage reads what a process has used.
func usage(pid int) (u used, err error) {
	if u.rssKiB, _, err = proc.Memory(pid); err != nil {
		return u, err
	}
	if u.switches, err = proc.Switches(pid); err != nil {
		return u, err
	}
	u.cpu, err = proc.CPU(pid)
	return u, err
}
