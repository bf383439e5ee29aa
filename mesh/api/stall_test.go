package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api"
)

func TestPulse(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	p := api.Pulse{Interval: 100 * time.Millisecond}
	require.False(t, p.Beat(now), "the first beat follows nothing")
	for _, step := range []struct {
		after   time.Duration
		stalled bool
	}{
		{100 * time.Millisecond, false},
		{api.StallTolerance + 100*time.Millisecond, false},
		{api.StallTolerance + 101*time.Millisecond, true},
		{time.Millisecond, false},
		{time.Hour, true},
	} {
		now = now.Add(step.after)
		require.Equal(t, step.stalled, p.Beat(now), step.after)
	}
}
