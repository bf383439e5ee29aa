package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a run did not play is kept, under the titles of today, also if it was ended
// before it began with a suite.
func TestKeep(t *testing.T) {
	suites := []*Suite{
		{Scenarios: []*Scenario{{Name: "one", Title: "One"}, {Name: "two", Title: "Two, said better"}}},
		{About: "the second", Scenarios: []*Scenario{{Name: "three", Title: "Three"}}},
	}
	foot := func(n int) map[string]Footprint { return map[string]Footprint{"rear/gateway": {Descriptors: n}} }
	earlier := &Report{Parts: []*Part{
		{Results: []*Result{{Name: "one", Took: 1}, {Name: "two", Title: "Two", Took: 2}, {Name: "gone"}}, Before: foot(1), After: foot(2)},
		{Results: []*Result{{Name: "three", Took: 3}}, Before: foot(3), After: foot(4)},
	}}
	now := &Report{Parts: []*Part{{Results: []*Result{{Name: "one", Took: 10}}, Before: foot(10), After: foot(20)}}}
	now.Keep(earlier, suites)
	require.Equal(t, []*Part{
		{Results: []*Result{{Name: "one", Title: "One", Took: 10}, {Name: "two", Title: "Two, said better", Took: 2}}, Before: foot(1), After: foot(2)},
		{About: "the second", Results: []*Result{{Name: "three", Title: "Three", Took: 3}}, Before: foot(3), After: foot(4)},
	}, now.Parts)

	alone := &Report{Parts: []*Part{{Results: []*Result{{Name: "one"}}}}}
	alone.Keep(new(Report), suites)
	require.Len(t, alone.Parts, 1, "there was no earlier run")
}
