package stackbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	if err := wait(ctx, settle); err != nil {
		return i, err
	}
	before, err := usage(p.Process.Pid)
	if err != nil {
		return i, err
	}
	if err := wait(ctx, time.Duration(seconds)*time.Second); err != nil {
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

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// used is what a process has used so far.
type used struct {
	rssKiB, switches int
	cpu              time.Duration
}

// usage adds up the threads of a process: the times that the scheduler keeps, in
// nanoseconds, and the switches.
func usage(pid int) (u used, err error) {
	u.rssKiB, err = field(filepath.Join("/proc", strconv.Itoa(pid), "status"), "VmRSS:")
	if err != nil {
		return u, err
	}
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*"))
	if err != nil {
		return u, err
	}
	for _, task := range tasks {
		n, err := field(filepath.Join(task, "status"), "voluntary_ctxt_switches:")
		if err != nil {
			return u, err
		}
		u.switches += n
		text, err := os.ReadFile(filepath.Join(task, "schedstat"))
		if err != nil {
			return u, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			return u, err
		}
		u.cpu += time.Duration(ns)
	}
	return u, nil
}

// field returns a number of a file in /proc.
func field(path, name string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("%s: no %s", path, name)
}
