package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
)

// Status names what was refused, and says nothing of what was right.
func TestCounters(t *testing.T) {
	t.Parallel()
	text := func(fill func(*table)) string {
		var b bytes.Buffer
		require.NoError(t, printTable(&b, fill))
		return b.String()
	}
	require.Equal(t, "\nCOUNTED                       TIMES\nrequests_refused_stale_epoch  3\nxds_resources_set_apart       1\n", text(func(t *table) {
		refusedTable(t, map[string]uint64{
			"requests_refused_stale_epoch": 3, "xds_resources_set_apart": 1, "xds_acks": 9, "xds_nacks": 0,
		})
	}))
	require.Empty(t, text(func(t *table) { refusedTable(t, map[string]uint64{"xds_acks": 9}) }))

	s := &gateway.Status{Networks: []gateway.NetworkStatus{
		{Name: "down"},
		{Name: "ecus", Discovery: &sd.Stats{Sent: 5, Own: 5, Received: 7, OwnEndpoint: 2}, Counters: &runtime.Stats{
			Received: 1, Malformed: 4, E2E: runtime.E2EStats{OK: 8, Repeated: 1, Dropped: 9},
		}},
	}, Watches: grpcadapter.WatchStats{Open: 3, ItemsLost: 6}}
	require.Equal(t, "\nNETWORK  OF          COUNTED      TIMES\necus     discovery   OwnEndpoint  2\necus     messages    Malformed    4\n"+
		"ecus     E2E checks  Repeated     1\necus     E2E checks  Dropped      9\ngRPC     watches     ItemsLost    6\n",
		text(func(t *table) { countersTable(t, s) }))
	require.Empty(t, text(func(t *table) { countersTable(t, &gateway.Status{}) }))
}
