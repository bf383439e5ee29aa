package bridge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
)

func TestInterfacesGrow(t *testing.T) {
	set := bridge.NewInterfaces()
	grown := set.Grown()
	_, ok := set.BySOMEIP(0x4001, 1)
	require.False(t, ok)

	require.NoError(t, set.Add(climate, []byte("descriptors")))
	select {
	case <-grown:
	default:
		t.Fatal("not told")
	}
	known, ok := set.BySOMEIP(0x4001, 1)
	require.True(t, ok)
	require.Same(t, climate, known.Interface)
	require.Equal(t, []byte("descriptors"), known.Descriptors)
	_, ok = set.BySOMEIP(0x4001, 2)
	require.False(t, ok)

	again := *climate
	require.NoError(t, set.Add(&again, nil))
	known, _ = set.ByName("cabin.climate.v1.Climate")
	require.Same(t, climate, known.Interface, "what is known stays")

	clash := &model.Interface{
		Package: "other", Name: "Thing", Version: model.Version{Major: 1},
		SOMEIP: &model.SOMEIPService{ServiceID: 0x4001},
	}
	require.ErrorContains(t, set.Add(clash, nil), "0x4001")
}
