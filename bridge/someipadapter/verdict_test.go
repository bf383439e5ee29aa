package someipadapter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// The verdict on a protected field reaches the watchers, good or bad (case 112).
func TestVerdictInMeta(t *testing.T) {
	for want, id := range map[carismav1.E2EStatus]uint32{
		carismav1.E2EStatus_E2E_OK: 7, carismav1.E2EStatus_E2E_ERROR: 8,
	} {
		d := newDomain(t)
		deployment := func(id uint32) runtime.Deployment {
			c := &runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P04, DataID: id}}
			return runtime.Deployment{
				Instance: runtime.InstanceKey{Service: 0x4001, Instance: 1, Major: 1},
				Events:   map[uint16]runtime.MessageConfig{0x8002: {E2E: c}},
			}
		}
		host, here := d.host(t, 2), d.host(t, 1)
		require.NoError(t, host.Deploy(deployment(7)))
		require.NoError(t, here.Deploy(deployment(id)))
		_, err := newECU(host)
		require.NoError(t, err)
		g := newGatewayOn(t, here, "rear", nil, nil, climateName)
		g.up(leftName, true)
		field, err := climatev1.NewClimateClient(g.conn).WatchTargetTemperature(t.Context(), &climatev1.ClimateWatchTargetTemperatureRequest{})
		require.NoError(t, err)
		item, err := field.Recv()
		require.NoError(t, err)
		require.Equal(t, want, item.GetMeta().GetE2E())
	}
}
