package faults

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// maxPressure is the share of a scenario's time in which some program may have
// waited for a core. The vehicle alone stays well below.
const maxPressure = 0.5

// cpuPressure returns for how long, since the machine started, some program has
// waited for a core; 0 where the kernel does not tell.
func cpuPressure() time.Duration {
	data, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "total=")
	total, _, _ := strings.Cut(rest, "\n")
	us, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

const (
	// stallLimit is how long this machine may stand still: much less than the time
	// in which a part of the mesh takes another for frozen.
	stallLimit = 100 * time.Millisecond
	stallTick  = 5 * time.Millisecond
)

// watchStalls measures how long this process did not run until the function it
// returns is called, which gives the longest time. On a machine that other work
// fills, pings go unanswered and bounds are missed though nothing is wrong.
func watchStalls(ctx context.Context) func() time.Duration {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan time.Duration)
	go func() {
		var longest time.Duration
		tick := time.NewTicker(stallTick)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-tick.C:
				now := time.Now()
				longest = max(longest, now.Sub(last)-stallTick)
				last = now
			case <-ctx.Done():
				result <- longest
				return
			}
		}
	}()
	return func() time.Duration {
		cancel()
		return <-result
	}
}
