package bridge

import (
	"context"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/codegen/model"
)

// Pauses of what is tried again: the first and the longest.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
	// rewatchMax is the longest for a watch: its consumers wait, and know nothing of
	// what is in the way.
	rewatchMax = 500 * time.Millisecond
)

// KeepWatching watches an event of a service whose watches may end although the
// service is up, such as one on gRPC, where a lost connection ends a stream. It
// watches again, with pauses that grow until an item came, until ctx ends. ended,
// if not nil, is told of each end.
func KeepWatching(ctx context.Context, svc Service, e *model.Event, sink Sink, ended func(error)) {
	pause := retryMin
	var came atomic.Bool
	noting := func(it Item) {
		came.Store(true)
		sink(it)
	}
	for ctx.Err() == nil {
		came.Store(false)
		err := svc.Watch(ctx, e, noting)
		if ctx.Err() != nil {
			return
		}
		if ended != nil {
			ended(err)
		}
		if came.Load() {
			pause = retryMin
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, rewatchMax)
	}
}

// sleep waits and tells whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
