package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/wait"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, wait.For(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		require.ErrorIs(t, wait.For(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
	})
}
