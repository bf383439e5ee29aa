package someipadapter

import (
	"context"
	"fmt"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// A gateway that comes back must not take an exposure from the one that took it
// over: on a network that it has just joined it looks for the instance first.
const (
	// heardTime is how long after the start everything that is offered was heard:
	// offers come again each second, with the usual settings.
	heardTime = 1500 * time.Millisecond
	// answerTime is how long the answer to a find may take: its own delay, and that
	// of the answer.
	answerTime = 200 * time.Millisecond
)

// listen returns once it is known whether another host offers an instance.
func (a *Adapter) listen(ctx context.Context, key someip.InstanceKey) error {
	wait := min(answerTime, heardTime-time.Since(a.opened))
	if wait <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	seen := make(chan struct{}, 1)
	err := a.network.Observe(ctx, key, func(av runtime.Availability) {
		if av.Up {
			a.sights.add(av)
			select {
			case seen <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	select {
	case <-seen:
	case <-ctx.Done():
	}
	return nil
}
