package bridge

import (
	"context"
	"time"

	"carisma.dev/gateway/codegen/model"
)

// Pauses of what is tried again: the first and the longest.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 5 * time.Second
)

// KeepWatching watches an event of a service whose watches may end although the
// service is up, such as one on gRPC, where a lost connection ends a stream. It
// watches again, with growing pauses, until ctx ends. ended, if not nil, is told
// of each end.
func KeepWatching(ctx context.Context, svc Service, e *model.Event, sink Sink, ended func(error)) {
	pause := retryMin
	for ctx.Err() == nil {
		began := time.Now()
		err := svc.Watch(ctx, e, sink)
		if ctx.Err() != nil {
			return
		}
		if ended != nil {
			ended(err)
		}
		if time.Since(began) > retryMax {
			pause = retryMin
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, retryMax)
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
