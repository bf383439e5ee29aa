package transcode_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

func TestAppendMeta(t *testing.T) {
	received := time.Date(2026, 5, 1, 10, 0, 0, 123456789, time.UTC)
	for _, c := range []struct {
		meta transcode.Meta
		want *carismav1.EventMeta
	}{
		{transcode.Meta{}, &carismav1.EventMeta{}},
		{
			transcode.Meta{Session: 0xFFFF, Source: "body/10.0.0.1:30501", Gap: 3, Received: received, E2E: carismav1.E2EStatus_E2E_REPEATED, Initial: true},
			&carismav1.EventMeta{Session: 0xFFFF, Source: "body/10.0.0.1:30501", Gap: 3, Received: timestamppb.New(received), E2E: carismav1.E2EStatus_E2E_REPEATED, Initial: true},
		},
		{
			transcode.Meta{Source: strings.Repeat("x", 127), Received: time.Unix(-1, 0)},
			&carismav1.EventMeta{Source: strings.Repeat("x", 127), Received: timestamppb.New(time.Unix(-1, 0))},
		},
	} {
		want := marshal(t, &climatev1.ClimateWatchTargetTemperatureResponse{Celsius: 21, Meta: c.want})
		args := marshal(t, &climatev1.ClimateWatchTargetTemperatureResponse{Celsius: 21})
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(transcode.AppendMeta(args, 1000, c.meta)))
		require.Equal(t, args, transcode.AppendMeta(args, 0, c.meta), "the item has no meta member")
	}

	buffer := make([]byte, 0, 256)
	meta := transcode.Meta{Session: 1, Source: "body/10.0.0.1:30501", Received: received}
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = transcode.AppendMeta(buffer, 1000, meta) }))
}
