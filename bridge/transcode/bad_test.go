package transcode_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/vehicles/cabin/gen/climatev1"
)

// TestUnfitValues are messages that SOME/IP cannot carry: the error has the path,
// the value and what is allowed, and nothing is written.
func TestUnfitValues(t *testing.T) {
	messages := cabin(t)
	vents := func(n int, last *climatev1.Vent) *climatev1.ClimateSetVentsRequest {
		m := &climatev1.ClimateSetVentsRequest{}
		for range n - 1 {
			m.Vents = append(m.Vents, &climatev1.Vent{})
		}
		m.Vents = append(m.Vents, last)
		return m
	}
	for _, c := range []struct {
		message proto.Message
		kind    error
		err     string
	}{
		{vents(3, &climatev1.Vent{Opening: 300}), transcode.ErrRange, "vents[2].opening: value out of range: 300, 0 to 255 allowed"},
		{vents(1, &climatev1.Vent{Position: math.MaxUint32}), transcode.ErrRange, "vents[0].position: value out of range: 4294967295, 0 to 255 allowed"},
		{vents(2, &climatev1.Vent{Direction: 3}), transcode.ErrEnum, "vents[1].direction: unknown enum value: 3 is none of the literals"},
		{vents(2, &climatev1.Vent{Direction: 1 << 16}), transcode.ErrRange, "vents[1].direction: value out of range: 65536, 0 to 65535 allowed"},
		{vents(2, &climatev1.Vent{Direction: -1}), transcode.ErrRange, "vents[1].direction: value out of range: -1, 0 to 65535 allowed"},
		{vents(17, &climatev1.Vent{}), transcode.ErrRange, "vents: value out of range: 17 elements, up to 16 allowed"},
		{&climatev1.ClimateSetModeRequest{Mode: 4}, transcode.ErrEnum, "mode: unknown enum value: 4 is none of the literals"},
		{&climatev1.ClimateSetModeRequest{Reason: strings.Repeat("x", 61)}, transcode.ErrRange, "reason: value out of range: 65 bytes, up to 64 allowed"},
		{&climatev1.ClimateSetModeRequest{Reason: "a\x00b"}, transcode.ErrText, "reason: invalid text: inner NUL"},
		{&climatev1.ClimateSetVentsResponse{Moved: []uint32{1, 256}}, transcode.ErrRange, "moved[1]: value out of range: 256, 0 to 255 allowed"},
		{&climatev1.ClimateSetVentsResponse{Moved: make([]uint32, 256)}, transcode.ErrRange, "moved: value out of range: 256 bytes, up to 255 allowed"},
		{&climatev1.ClimateBoostRequest{Seconds: 65536}, transcode.ErrRange, "seconds: value out of range: 65536, 0 to 65535 allowed"},
	} {
		name := string(c.message.ProtoReflect().Descriptor().FullName())
		dst, err := compile(t, messages[name]).ToSOMEIP([]byte{1}, marshal(t, c.message))
		require.ErrorIs(t, err, c.kind)
		require.EqualError(t, err, c.err)
		require.Equal(t, []byte{1}, dst)
	}

	wide := wide(t)["test.wide.v1.Scalars"]
	codec := compile(t, wide)
	for tag, want := range map[string]string{
		"10 ff01":                 "i8: value out of range: 255, -128 to 127 allowed",
		"10 fffeffffffffffffff01": "i8: value out of range: -129, -128 to 127 allowed",
		"30 8002":                 "s8: value out of range: 128, -128 to 127 allowed",
		"4d 00800000":             "sf16: value out of range: 32768, -32768 to 32767 allowed",
		"8001 808004":             "u64_as_u16: value out of range: 65536, 0 to 65535 allowed",
		"8d01 00000100":           "f16: value out of range: 65536, 0 to 65535 allowed",
	} {
		_, err := codec.ToSOMEIP(nil, bytesOf(t, tag))
		require.EqualError(t, err, want)
	}
}

func TestInvalidText(t *testing.T) {
	codec := compile(t, cabin(t)["cabin.climate.v1.ClimateSetModeRequest"])
	for hex, want := range map[string]string{
		"00 0005 efbbbf ff 00":    "reason: invalid text: not UTF-8",
		"00 0007 efbbbf 61006200": "reason: invalid text: inner NUL",
	} {
		_, err := codec.ToProto(nil, bytesOf(t, hex))
		require.ErrorIs(t, err, transcode.ErrText)
		require.EqualError(t, err, want)
		var e *transcode.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, 6+strings.Count(hex, "6100"), e.Offset)
	}
	_, err := codec.ToSOMEIP(nil, bytesOf(t, "1201ff"))
	require.EqualError(t, err, "reason: invalid text: not UTF-8")
}

// TestMalformedPayloads are SOME/IP payloads that end early or lie about lengths.
func TestMalformedPayloads(t *testing.T) {
	messages := cabin(t)
	for _, c := range []struct {
		message, bytes string
		offset         int
		err            string
	}{
		{"ClimateBoostRequest", "01", 0, "seconds: malformed message: truncated: 1 bytes left, at least 2 needed"},
		{"ClimateDescribeResponse", "", 0, "zone: malformed message: truncated: 0 bytes left, at least 4 needed"},
		{"ClimateDescribeResponse", "fffffff8 00", 0, "zone: malformed message: length 4294967288, 1 bytes left"},
		{"ClimateSetVentsRequest", "0007 0004 01 64 0001 00", 8, "vents[1]: malformed message: truncated: 1 bytes left, at least 2 needed"},
		{"ClimateSetVentsRequest", "0009 0004 01 64 0001 0001 ff", 11, "vents[1].opening: malformed message: truncated: 0 bytes left, at least 1 needed"},
		{"ClimateSetVentsRequest", "0006 0005 01 64 0001", 2, "vents[0]: malformed message: length 5, 4 bytes left"},
		{"ClimateWatchAirQualityResponse", "0320 41480000 00000004 efbbbf00 00000003 032003", 18, "samples: malformed message: 3 bytes are no multiple of the element's 2"},
		{"ClimateSetVentsResponse", "03 0102", 0, "moved: malformed message: length 3, 2 bytes left"},
		{"ClimateSetVentsRequest", "0066" + strings.Repeat("0004 00 00 0000", 17), 98, "vents: value out of range: more than 16 elements, up to 16 allowed"},
	} {
		_, err := compile(t, messages["cabin.climate.v1."+c.message]).ToProto(nil, bytesOf(t, c.bytes))
		require.EqualError(t, err, c.err)
		var e *transcode.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, c.offset, e.Offset, c.err)
	}
}

// TestSurplus has structs that a newer sender has made longer (someip.md 5.2).
func TestSurplus(t *testing.T) {
	codec := compile(t, cabin(t)["cabin.climate.v1.ClimateSetVentsRequest"])
	got, err := codec.ToProto(nil, bytesOf(t, "000e 0006 01 64 0001 a5a5 0004 02 00 0000"))
	require.NoError(t, err)
	want := marshal(t, &climatev1.ClimateSetVentsRequest{Vents: []*climatev1.Vent{{Position: 1, Opening: 100, Direction: 1}, {Position: 2}}})
	require.Equal(t, want, got)
}

// TestMalformedProtobuf are bytes that protobuf refuses too.
func TestMalformedProtobuf(t *testing.T) {
	codec := compile(t, cabin(t)["cabin.climate.v1.ClimateSetVentsRequest"])
	for _, hex := range []string{
		"0a", "0a05", "0aff", "00", "08", "0c", "0b", "0b0801", "0dffff", "09ffff", "ffffffffffffffffffffff",
		"0a02 0880", "0a01 0d", "0a03 080102", "f8ffffff7f01", "0f",
	} {
		b := bytesOf(t, hex)
		_, err := codec.ToSOMEIP(nil, b)
		require.ErrorIs(t, err, transcode.ErrMalformed, hex)
		require.Error(t, proto.Unmarshal(b, &climatev1.ClimateSetVentsRequest{}), hex)
	}
	// Fields of another wire type, groups and large numbers are unknown fields.
	var unknown []byte
	unknown = protowire.AppendVarint(protowire.AppendTag(unknown, 1, protowire.VarintType), 7)
	unknown = protowire.AppendGroup(protowire.AppendTag(unknown, 1, protowire.StartGroupType), 1, nil)
	unknown = protowire.AppendFixed64(protowire.AppendTag(unknown, protowire.MaxValidNumber, protowire.Fixed64Type), 7)
	got, err := codec.ToSOMEIP(nil, unknown)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0}, got)
}

// TestAmplification has two bytes that stand for a kilobyte, very often.
func TestAmplification(t *testing.T) {
	large := structOf(packed(member("numbers", 1, withType(arrayOf(uintOf(8), 0), func(t *model.SOMEIPType) { t.Count = 128 }))))
	s := structOf(member("list", 1, arrayOf(messageOf(large), 4)))
	_, err := compile(t, s).ToSOMEIP(nil, bytes.Repeat([]byte{0x0A, 0}, 1<<16))
	require.ErrorIs(t, err, transcode.ErrRange)
	require.EqualError(t, err, "list[16384]: value out of range: 16777220 bytes, up to 16777216 allowed")
}

func TestCompileRefuses(t *testing.T) {
	array := arrayOf(uintOf(1), 4)
	for want, s := range map[string]*model.Struct{
		`test.Message: payload: a: invalid layout: uint of 3 bytes`:                                       structOf(member("a", 1, uintOf(3))),
		`test.Message: payload: a: invalid layout: kind invalid`:                                          structOf(member("a", 1, plain(model.Invalid, model.ProtoUint32, 1))),
		`test.Message: field number 0`:                                                                    structOf(member("a", 0, uintOf(1))),
		`test.Message: field number 1 twice`:                                                              structOf(member("a", 1, uintOf(1)), member("b", 1, uintOf(1))),
		`test.Message: a: []: an element that is an array, a map or a union needs a message around it`:    structOf(member("a", 1, arrayOf(array, 4))),
		`test.Message: a: b: an alternative that is an array, a map or a union needs a message around it`: structOf(member("a", 1, unionOf(structOf(member("b", 1, array))))),
		`test.Message: a: protobuf type 8 cannot carry kind 8`:                                            structOf(member("a", 1, plain(model.Uint32, model.ProtoBool, 4))),
		`test.Message: payload: a: invalid layout: an optional member needs a data id`:                    structOf(optional(member("a", 1, uintOf(1)), -1)),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := transcode.Compile(s)
			require.ErrorContains(t, err, want)
		})
	}
}
