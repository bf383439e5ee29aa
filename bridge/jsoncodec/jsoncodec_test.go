package jsoncodec_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge/jsoncodec"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
)

func cabin(t *testing.T) (*jsoncodec.Codec, map[string]*model.Struct) {
	t.Helper()
	set, err := proto.Load("../../vehicles/cabin/interfaces")
	require.NoError(t, err)
	climate := set.Interface("cabin.climate.v1.Climate")
	c, err := jsoncodec.New(set.Descriptors(climate.FullName()))
	require.NoError(t, err)
	structs := map[string]*model.Struct{}
	for _, m := range climate.AllMethods() {
		structs[m.In.Name], structs[m.Out.Name] = m.In, m.Out
	}
	return c, structs
}

func TestBothWays(t *testing.T) {
	c, structs := cabin(t)
	vents := structs["cabin.climate.v1.ClimateSetVentsRequest"]
	text := `{"vents":[{"position":1,"opening":80,"direction":"DIRECTION_UP"},{"position":2,"opening":0,"direction":"DIRECTION_CENTER"}]}`
	b, err := c.Payload(vents, []byte(text))
	require.NoError(t, err)
	require.Equal(t, "000c"+"0004"+"01500001"+"0004"+"02000000", hex.EncodeToString(b))
	back, err := c.JSON(vents, b)
	require.NoError(t, err)
	require.Equal(t, text, string(back))

	empty, err := c.Payload(structs["cabin.climate.v1.ClimateDescribeRequest"], nil)
	require.NoError(t, err)
	require.Empty(t, empty)
}

func TestMistakes(t *testing.T) {
	c, structs := cabin(t)
	vents := structs["cabin.climate.v1.ClimateSetVentsRequest"]
	for text, want := range map[string]string{
		`{"vent":1}`: `unknown field "vent"`,
		`[`:          "syntax error",
		`{"vents":[{"position":1},{"position":300}]}`: "vents[1].position",
	} {
		_, err := c.Payload(vents, []byte(text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := c.JSON(vents, []byte{0, 9, 1})
	require.Error(t, err)
	_, err = c.JSON(&model.Struct{Name: "no.such.Message"}, nil)
	require.ErrorContains(t, err, "no.such.Message")
	_, err = jsoncodec.New([]byte{0xff})
	require.ErrorContains(t, err, "descriptor set")
}
