package someipadapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A refusal that overtakes the StopOffer is not the reason.
func TestRefusalOvertakesStop(t *testing.T) {
	refused, stopped := errors.New("refused"), errors.New("stopped")
	synctest.Test(t, func(t *testing.T) {
		var why error
		gone := make(chan struct{})
		require.Equal(t, refused, refusal(t.Context(), refused, gone, &why))
		time.AfterFunc(stopLag/2, func() { why = stopped; close(gone) })
		require.Equal(t, stopped, refusal(t.Context(), refused, gone, &why))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		require.Equal(t, stopped, refusal(ctx, refused, make(chan struct{}), &why))
	})
}
