package agent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// A node that itself stood still gives the control plane another lease's time to
// answer, and no more.
func TestBeatAfterAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{}, 1)
		beats, silent := 0, time.Time{}
		err := beat(t.Context(), func(*meshv1.KeepAliveRequest) error {
			switch beats++; {
			case beats == 3:
				time.Sleep(time.Minute) // the process is stopped; answers lie unread
			case beats < 6:
				answers <- struct{}{}
			case beats == 6:
				silent = time.Now()
			}
			return nil
		}, answers)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.Greater(t, beats, 6, "it went on after the stall")
		require.InDelta(t, api.LeaseTimeout, time.Since(silent), float64(api.HeartbeatInterval))
	})
}
