package grpcadapter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Work ends before its call, so that an answer can be on its way.
func TestAnswerable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := answerable(t.Context())
		defer cancel()
		require.Equal(t, t.Context(), ctx, "without a deadline")
		for given, left := range map[time.Duration]time.Duration{
			5 * time.Second: 20 * time.Millisecond, 100 * time.Millisecond: 5 * time.Millisecond, -time.Second: 0,
		} {
			call, over := context.WithTimeout(t.Context(), given)
			work, done := answerable(call)
			<-work.Done()
			require.ErrorIs(t, work.Err(), context.DeadlineExceeded)
			at, _ := call.Deadline()
			if left > 0 {
				require.Equal(t, left, time.Until(at))
				require.NoError(t, call.Err())
			}
			done()
			over()
		}
	})
}
