package transcode_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/model"
	protoreader "carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

// cabin returns the messages of the cabin's interfaces by name.
func cabin(tb testing.TB) map[string]*model.Struct {
	tb.Helper()
	set, err := protoreader.Load("../../vehicles/cabin/interfaces")
	require.NoError(tb, err)
	messages := map[string]*model.Struct{}
	for _, i := range set.Interfaces {
		for _, m := range i.AllMethods() {
			messages[m.In.Name], messages[m.Out.Name] = m.In, m.Out
		}
		for _, e := range i.AllEvents() {
			messages[e.Args.Name] = e.Args
		}
	}
	return messages
}

func compile(tb testing.TB, s *model.Struct) *transcode.Codec {
	tb.Helper()
	require.NotNil(tb, s)
	c, err := transcode.Compile(s)
	require.NoError(tb, err)
	return c
}

func bytesOf(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(tb, err)
	return b
}

func marshal(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	require.NoError(tb, err)
	return b
}

// TestCabin has bytes as an ECU sends them, written by hand from the interface.
func TestCabin(t *testing.T) {
	messages := cabin(t)
	for _, c := range []struct {
		message proto.Message
		someip  string
	}{
		{&climatev1.ClimateDescribeRequest{}, ""},
		{&climatev1.ClimateDescribeResponse{
			Zone: "left", Mode: climatev1.Mode_MODE_AUTO, SoftwareVersion: 258,
			Sensors: []*climatev1.Sensor{{Name: "footwell", Celsius: 19.5, Healthy: true}, {Name: "roof", Celsius: 21.25, Healthy: true}},
		}, "00000008 efbbbf6c65667400" + "01" +
			"00000026" + "0000000c efbbbf666f6f7477656c6c00 419c0000 01" + "00000008 efbbbf726f6f6600 41aa0000 01" + "0102"},
		{&climatev1.ClimateSetVentsRequest{Vents: []*climatev1.Vent{
			{Position: 1, Opening: 100, Direction: climatev1.Direction_DIRECTION_UP}, {Position: 255, Opening: 0},
		}}, "000c" + "0004 01 64 0001" + "0004 ff 00 0000"},
		{&climatev1.ClimateSetVentsResponse{Moved: []uint32{1, 2, 200}}, "03 01 02 c8"},
		{&climatev1.ClimateSetModeRequest{Mode: climatev1.Mode_MODE_COOL, Reason: "µ"}, "03 0006 efbbbf c2b5 00"},
		{&climatev1.ClimateSetModeRequest{}, "00 0004 efbbbf 00"},
		{&climatev1.ClimateBoostRequest{Seconds: 601}, "0259"},
		{
			&climatev1.ClimateWatchAirQualityResponse{Co2Ppm: 800, Dust: 12.5, Source: "left", Samples: []uint32{800, 801}},
			"0320 41480000 00000008 efbbbf6c65667400 00000004 0320 0321",
		},
		{&climatev1.ClimateGetTargetTemperatureResponse{Celsius: 21}, "41a80000"},
		{
			&tripv1.TripComputerLegResponse{Kilometres: 42.5, Waypoints: []string{"Home", ""}},
			"4045400000000000" + "00000014" + "00000008 efbbbf 486f6d65 00" + "00000004 efbbbf 00",
		},
		{&tripv1.TripComputerAverageResponse{Mean: 50, SpeedClass: tripv1.SpeedClass_SPEED_CLASS_ROAD}, "42480000 01"},
	} {
		name := string(c.message.ProtoReflect().Descriptor().FullName())
		t.Run(name, func(t *testing.T) {
			codec := compile(t, messages[name])
			someip, wire := bytesOf(t, c.someip), marshal(t, c.message)

			got, err := codec.ToSOMEIP([]byte{0xEE}, wire)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(append([]byte{0xEE}, someip...)), hex.EncodeToString(got))

			got, err = codec.ToProto([]byte{0xEE}, someip)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(append([]byte{0xEE}, wire...)), hex.EncodeToString(got))

			got, err = codec.ToProto(nil, append(someip, 0xA5, 0xA5)) // HDR-6
			require.NoError(t, err)
			require.Equal(t, string(wire), string(got))

			for n := range someip {
				_, err = codec.ToProto(nil, someip[:n:n])
				require.ErrorIs(t, err, transcode.ErrMalformed, "%d of %d bytes", n, len(someip))
				var e *transcode.Error
				require.ErrorAs(t, err, &e)
				require.LessOrEqual(t, e.Offset, n)
				require.NotEmpty(t, e.Path)
			}
		})
	}
}
