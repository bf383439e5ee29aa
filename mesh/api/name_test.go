package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/api"
)

func TestMeshName(t *testing.T) {
	t.Parallel()
	const iface = "cabin.climate.v1.Climate"
	for instance, want := range map[string]string{
		"":           "default.cabin.climate.v1.climate",
		"left":       "left.cabin.climate.v1.climate",
		"Front Left": "front_20left.cabin.climate.v1.climate",
		"0x0001":     "0x0001.cabin.climate.v1.climate",
		"tür":        "t_c3_bcr.cabin.climate.v1.climate",
		"a_b.c":      "a_5fb_2ec.cabin.climate.v1.climate",
	} {
		require.Equal(t, want, api.MeshName(iface, instance))
		require.Equal(t, model.MeshName(iface, instance), api.MeshName(iface, instance))
	}
}
