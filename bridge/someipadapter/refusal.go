package someipadapter

import (
	"context"
	"time"
)

// stopLag is how much later than a refusal the end of an offer may be taken that the
// server told before it: they come by different sockets.
const stopLag = 100 * time.Millisecond

// refusal returns why a watch ends whose subscription was refused: refused, or, since
// a server that stops refuses too, why the instance went. That is valid once gone is
// closed.
func refusal(ctx context.Context, refused error, gone <-chan struct{}, why *error) error {
	lag := time.NewTimer(stopLag)
	defer lag.Stop()
	select {
	case <-gone:
		return *why
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-lag.C:
		return refused
	}
}
