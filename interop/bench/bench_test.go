package bench

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/interop/faults"
)

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	require.InDelta(t, 3, median(values), 0)
	require.InDelta(t, 5, quantile(values, 0.99), 0)
	require.InDelta(t, 1, quantile(values, 0), 0)
	require.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the caller's order stays")
}

func TestTallyCountsGaps(t *testing.T) {
	var y tally
	y.reset()
	for _, n := range []uint32{0, 1, 4} {
		item := &benchv1.EchoWatchTickResponse{Number: n}
		if n == 4 {
			item.Meta = &carismav1.EventMeta{Gap: 2}
		}
		y.add(item, nil)
	}
	f, err := y.wait(context.Background(), flood{sent: 5})
	require.NoError(t, err)
	require.Equal(t, 2, f.lost())
	require.Equal(t, 2, f.gaps)

	gone := errors.New("gone")
	y.add(nil, gone)
	_, err = y.wait(context.Background(), flood{sent: 5})
	require.ErrorIs(t, err, gone)
}

func TestSoak(t *testing.T) {
	r := &Result{Soak: &faults.Soak{Took: 3600, Faults: 90, Programs: []*faults.SoakProgram{{
		Name: "rear/gateway", Lived: 3500,
		Start: faults.Footprint{AnonKiB: 1024, Descriptors: 20, Goroutines: 100},
		End:   faults.Footprint{AnonKiB: 1075, Descriptors: 21, Goroutines: 99},
	}}}}
	r.judgeSoak()
	met := map[string]bool{}
	for _, a := range r.Aims {
		met[a.What[strings.LastIndex(a.What, ": ")+2:][:6]] = a.Met
	}
	require.Equal(t, map[string]bool{"anonym": true, "descri": false, "gorout": true}, met)

	var out strings.Builder
	writeSoak(&out, r.Soak)
	require.Contains(t, out.String(), "90 faults in 60 minutes")
	require.Contains(t, out.String(), "\n| rear/gateway | 58 | 1.0 → 1.0 | 20 → 21 | 100 → 99 |\n")
	out.Reset()
	writeSoak(&out, nil)
	require.Contains(t, out.String(), "not recorded")
}

func TestMarkdown(t *testing.T) {
	r := &Result{
		Loads:   []Load{{What: "a path", Unit: "calls/s", Rate: 200, Rounds: []float64{100, 300, 200}, Vsomeip: 2}},
		Changes: []Change{{What: endpointChange, Services: 500, P50: 1, P99: 2}},
	}
	r.Aims.AtLeast("a rate", 1.5, 2)
	r.Aims.AtMost("a time", 1.5, 2)
	var out strings.Builder
	r.WriteMarkdown(&out)
	require.Contains(t, out.String(), "| a rate | at least | 2 | 1.50 | missed |\n| a time | at most | 2 | 1.50 | met |\n")
	require.Contains(t, out.String(), "| a path | calls/s | 200 (100–300) | 2.00 | 0.00 |  |\n")
	require.Contains(t, out.String(), "\n|---|---|---|---|\n| endpoint of a service | 500 | 1.00 | 2.00 |\n")
	require.NotContains(t, out.String(), "round trip", "what was not measured has no table")
}
