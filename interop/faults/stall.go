package faults

import (
	"context"
	"time"
)

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
