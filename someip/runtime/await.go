package runtime

import (
	"context"
	"fmt"
)

// Await waits until the instance is offered, for which it looks (FindService).
// It returns at once if it is, and an error that wraps the cause of the context
// when that ends before. It must not be called from a callback.
func (c *Client) Await(ctx context.Context) error {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	up := make(chan struct{}, 1)
	if err := c.n.Observe(watch, c.key, func(a Availability) {
		if a.Up {
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		return err
	}
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is not offered: %w", c.key, context.Cause(ctx))
	}
}
