package runtime

import (
	"context"
	"fmt"
)

// Await waits until an instance that the filter selects is offered, and returns the
// first one. A filter of a certain service also looks for it (FindService). It returns
// at once if there is one, and an error that wraps the cause of the context when that
// ends before. It must not be called from a callback.
func (n *Network) Await(ctx context.Context, filter Filter) (Availability, error) {
	watch, stop := context.WithCancel(ctx)
	defer stop()
	first := make(chan Availability, 1)
	if err := n.Observe(watch, filter, func(a Availability) {
		if a.Up {
			select {
			case first <- a:
			default:
			}
		}
	}); err != nil {
		return Availability{}, err
	}
	select {
	case a := <-first:
		return a, nil
	case <-ctx.Done():
		return Availability{}, fmt.Errorf("%s is not offered: %w", filter, context.Cause(ctx))
	}
}

// Await waits until the instance is offered, as Network.Await does.
func (c *Client) Await(ctx context.Context) error {
	_, err := c.n.Await(ctx, c.key)
	return err
}
