package gateway

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
)

type nobody struct{ bridge.Service }

func (nobody) Invoke(context.Context, *model.Method, []byte) ([]byte, error) { return nil, nil }

// CAR-52: the set comes with its first instance and goes with its last; others pass.
func TestIntake(t *testing.T) {
	t.Parallel()
	iface := &model.Interface{Package: "a", Name: "I", Version: model.Version{Major: 1}}
	in := newIntake(&config.Network{Replicas: []config.Replicas{
		{Interface: iface.FullName(), Name: "any", Instances: []string{"left", "right"}},
	}})
	offer := func(name string, svc bridge.Service) (bridge.Offer, bool) {
		return in.take(bridge.Offer{Instance: bridge.Instance{Interface: iface, Name: name}, Service: svc, Reason: "StopOffer"})
	}
	o, told := offer("roof", nobody{})
	require.True(t, told)
	require.Equal(t, "roof", o.Name)

	o, told = offer("left", nobody{})
	require.True(t, told)
	require.Equal(t, "any", o.Name)
	_, err := o.Service.Invoke(t.Context(), nil, nil)
	require.NoError(t, err)
	_, told = offer("right", nobody{})
	require.False(t, told)
	_, told = offer("left", nil)
	require.False(t, told)
	last, told := offer("right", nil)
	require.True(t, told)
	require.Nil(t, last.Service)
	require.Equal(t, "any", last.Name)
	require.Equal(t, "StopOffer", last.Reason)
	_, err = o.Service.Invoke(t.Context(), nil, nil)
	require.ErrorContains(t, err, "StopOffer")

	// What is withdrawn stays away.
	gone, told := in.withdraw(withdrawal{"roof.a.v1.i", "moved"})
	require.True(t, told)
	require.Nil(t, gone.Service)
	require.Equal(t, "moved", gone.Reason)
	_, told = offer("roof", nobody{})
	require.False(t, told)
	_, told = in.withdraw(withdrawal{"roof.a.v1.i", "moved"})
	require.False(t, told)
}
