package grpcadapter

import (
	"context"
	"time"
)

// answerTime is how long before its deadline a call is given up, at most a
// twentieth of the time that it has.
const answerTime = 20 * time.Millisecond

// answerable returns a context for the work of a call, which ends a little before
// the call's own. At its deadline the transport resets the stream, which a proxy
// tells its caller as UNAVAILABLE; an answer DEADLINE_EXCEEDED must be out by then.
func answerable(ctx context.Context) (context.Context, context.CancelFunc) {
	at, limited := ctx.Deadline()
	if !limited {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, at.Add(-min(answerTime, time.Until(at)/20)))
}
