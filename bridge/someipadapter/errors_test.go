package someipadapter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/someip/runtime"
)

func TestCallError(t *testing.T) {
	since := time.Unix(1700000000, 0)
	gone := callError(fmt.Errorf("call: %w", &runtime.UnavailableError{Reason: runtime.ReasonTTL, Since: since}))
	require.Equal(t, status.Unavailable("offers ceased", since), gone)
	require.Same(t, gone, callError(gone))
	for err, code := range map[error]codes.Code{
		runtime.ErrTimeout:       codes.DeadlineExceeded,
		context.DeadlineExceeded: codes.DeadlineExceeded,
		context.Canceled:         codes.Canceled,
		runtime.ErrTooLarge:      codes.InvalidArgument, // case 11
		runtime.ErrNoTransport:   codes.FailedPrecondition,
		runtime.ErrBusy:          codes.ResourceExhausted,
		runtime.ErrClosed:        codes.Unavailable,
		errors.New("no route"):   codes.Unavailable,
	} {
		require.Equal(t, code, callError(err).Code, "%v", err)
	}
}

func TestTranslationErrors(t *testing.T) {
	err := fmt.Errorf("translate: %w", &transcode.Error{
		Path: "vents[1].opening", Offset: 7, Reason: "300, 0 to 255 allowed", Err: transcode.ErrRange,
	})
	require.Equal(t, status.InvalidArgument("vents[1].opening", "value out of range: 300, 0 to 255 allowed"), requestError(err))
	require.Equal(t, status.DataLoss("vents[1].opening", "value out of range: 300, 0 to 255 allowed"), answerError(err))
	bare := &transcode.Error{Err: transcode.ErrMalformed}
	require.Equal(t, status.InvalidArgument("", "malformed message"), requestError(bare))
}
