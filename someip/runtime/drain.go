package runtime

import (
	"sync/atomic"
	"time"
)

// drain counts requests that wait for an answer, and waits until there is none.
type drain struct {
	count atomic.Int64
	idle  chan struct{} // has one when the count became 0
}

func (d *drain) done() {
	if d.count.Add(-1) == 0 {
		select {
		case d.idle <- struct{}{}:
		default:
		}
	}
}

// wait blocks until nothing waits for an answer, at most for a time.
func (d *drain) wait(most time.Duration) {
	if most < 0 || d.count.Load() == 0 {
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	for d.count.Load() > 0 {
		select {
		case <-d.idle:
		case <-t.C:
			return
		}
	}
}
