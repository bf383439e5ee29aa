package stackbench

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFloodRequest(t *testing.T) {
	f := FloodRequest{Count: 30000, Size: 1024, Rate: 1000}
	b := f.append()
	require.Len(t, b, FloodRequestSize)
	require.Equal(t, f, ParseFlood(b))
	require.EqualValues(t, 4, ParseFlood(FloodRequest{Count: 1}.append()).Size)
	require.EqualValues(t, 1400, ParseFlood(FloodRequest{Size: 1 << 31}.append()).Size)
}

func TestUsage(t *testing.T) {
	u, err := usage(os.Getpid())
	require.NoError(t, err)
	require.NotZero(t, u.rssKiB)
	require.NotZero(t, u.cpu)
	require.NotZero(t, u.switches)
}

func TestTally(t *testing.T) {
	var all tally
	all.add(1)
	all.add(9)
	a, err := all.wait(t.Context(), 10)
	require.NoError(t, err)
	require.Zero(t, a.Lost)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var none tally
	_, err = none.wait(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
}

func TestBurstOfOffers(t *testing.T) {
	b, err := burst()
	require.NoError(t, err)
	require.Positive(t, b.Milliseconds)
	require.Less(t, max(b.Bytes, b.OwnBytes), 2048.0)
}

func TestMarkdown(t *testing.T) {
	r := Result{Micros: []Micro{{What: "check", Bytes: 1000, Nanoseconds: 2000, MinGB: 1}}}
	r.row(Row{What: "call", Unit: "µs", Ours: 26.66, Vsomeip: 129})
	r.Aims.AtMost("call", 0.2, 0.25)
	r.Aims.AtLeast("events", 0.6, 0.7)
	var b bytes.Buffer
	r.WriteMarkdown(&b)
	for _, line := range []string{
		"| call | µs | 26.7 |  |  | 129 |  |",
		"| call | at most | 0.25 | 0.20 | met |",
		"| events | at least | 0.7 | 0.60 | missed |",
		"| check | 1000 | 2000 | 0.50 | 0 | missed |",
	} {
		require.True(t, strings.Contains(b.String(), line+"\n"), "%s in\n%s", line, b.String())
	}
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, (&measured{values: []float64{3, 1, 2}}).median(), 0)
}
