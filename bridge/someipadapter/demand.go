package someipadapter

import (
	"context"
	"sync"
)

// demand tells whether somebody subscribed to an event.
type demand struct {
	mu      sync.Mutex
	there   bool
	changed chan struct{} // closed with each change
}

func newDemand() *demand { return &demand{changed: make(chan struct{})} }

func (d *demand) set(there bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.there != there {
		d.there = there
		close(d.changed)
		d.changed = make(chan struct{})
	}
}

// wait waits until there is, or is no, demand and tells whether ctx is alive.
func (d *demand) wait(ctx context.Context, there bool) bool {
	for {
		d.mu.Lock()
		is, changed := d.there, d.changed
		d.mu.Unlock()
		if is == there {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// while runs f whenever there is demand, until ctx ends. The context of f ends
// when the demand does.
func (d *demand) while(ctx context.Context, f func(ctx context.Context)) {
	for d.wait(ctx, true) {
		wanted, cancel := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() {
			d.wait(wanted, false)
			cancel()
		})
		f(wanted)
		cancel()
		watch.Wait()
	}
}
