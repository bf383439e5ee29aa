package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGrown(t *testing.T) {
	all := func() map[string]Footprint {
		return map[string]Footprint{
			"left/gateway":  {PID: 1, AnonKiB: 15 << 10, Descriptors: 30, Goroutines: 154},
			"right/gateway": {PID: 2, AnonKiB: 11 << 10, Descriptors: 25, Goroutines: 130},
			"right/envoy":   {PID: 3, AnonKiB: 15 << 10, Descriptors: 31},
		}
	}
	both := []string{"left", "right"}
	require.Empty(t, grown(all(), all(), nil))
	require.Empty(t, grown(all(), all(), both))

	leaks := all()
	leaks["left/gateway"] = Footprint{PID: 1, AnonKiB: 64 << 10, Descriptors: 37, Goroutines: 171}
	leaks["right/gateway"] = Footprint{PID: 2} // what this one frees makes good for nothing
	require.Equal(t, []string{
		"left/gateway has 37 descriptors, it had 30",
		"left/gateway has 171 goroutines, it had 154",
		"left/gateway has 65536 KiB of anonymous memory, it had 15360",
	}, grown(all(), leaks, nil))

	moved := all()
	moved["left/gateway"], moved["right/gateway"] = moved["right/gateway"], moved["left/gateway"]
	require.Empty(t, grown(all(), moved, both), "they changed roles")
	require.NotEmpty(t, grown(map[string]Footprint{"left/gateway": {Descriptors: 20}, "right/gateway": {Descriptors: 30}},
		map[string]Footprint{"left/gateway": {Descriptors: 30}, "right/gateway": {Descriptors: 20}}, nil), "and nobody else may")

	leaks = all()
	leaks["left/gateway"] = Footprint{PID: 1, AnonKiB: 15 << 10, Descriptors: 30, Goroutines: 154 + 2*slackGoroutines + 1}
	require.Equal(t, []string{"left and right/gateway has 317 goroutines, it had 284"}, grown(all(), leaks, both))
}
