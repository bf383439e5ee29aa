package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// CAR-52: instances that the node file declares interchangeable are one in the mesh
// and share its calls; when one goes the other takes them.
func TestDeclaredReplicas(t *testing.T) {
	v := newVehicle(t)
	v.center.start(t)
	node := v.node(t, "body", "satellite", "127.78.0.6", fmt.Sprintf(`
networks:
  - name: rear-ecu
    address: 127.78.1.6/24
    sd: {group: 224.244.78.1, port: %d, initial_delay: 0ms-10ms, repetitions_base_delay: 20ms}
    client_ids: 0x1300-0x13ff
    ports: 30800-30899
    replicas:
      - {interface: cabin.climate.v1.Climate, name: any, instances: [left, right]}
`, v.sdPort))
	node.start(t)
	one := v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	two := v.host(t, "127.78.1.3", runtime.Range{First: 0x1500, Last: 0x15ff})
	offerClimate(t, one, "left", 1)
	offerClimate(t, two, "right", 2)

	client := climatev1.NewClimateClient(dial(t, v.center.egress))
	authority := grpc.CallAuthority("any.cabin.climate.v1.climate")
	zones := func(calls int) map[string]int {
		counts := map[string]int{}
		for range calls {
			d, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{}, authority)
			require.NoError(t, err)
			counts[d.GetZone()]++
		}
		return counts
	}
	eventually(t, describe(client, authority))
	require.Eventually(t, func() bool { return len(zones(2)) == 2 }, patience, time.Millisecond)
	require.Equal(t, map[string]int{"left": 50, "right": 50}, zones(100))
	for _, in := range node.status(t).Instances {
		require.NotEqual(t, leftName, in.Name, "the set stands for it")
	}

	leave(t, one)
	require.Eventually(t, func() bool {
		d, err := client.Describe(t.Context(), &climatev1.ClimateDescribeRequest{}, authority)
		return err == nil && d.GetZone() == "right" && zones(1)["right"] == 1 && len(zones(4)) == 1
	}, patience, time.Millisecond)
	require.Equal(t, map[string]int{"right": 50}, zones(50))
}
