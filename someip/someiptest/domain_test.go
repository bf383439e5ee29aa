package someiptest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDomainsDoNotHearEachOther(t *testing.T) {
	one, two := someiptest.NewDomain(t), someiptest.NewDomain(t)
	require.NotEqual(t, one.Group, two.Group)
	_, err := one.Start(1).Offer(runtime.ServiceConfig{Service: 1, Instance: 1, Major: 1, UDPPort: runtime.AutoPort})
	require.NoError(t, err)

	heard := func(d *someiptest.Domain) <-chan runtime.Availability {
		ch := make(chan runtime.Availability, 10)
		all := runtime.Filter{Service: 0xFFFF, Instance: 0xFFFF, Major: 0xFF}
		require.NoError(t, d.Start(2).Observe(t.Context(), all, func(a runtime.Availability) { ch <- a }))
		return ch
	}
	nothing := heard(two)
	a := <-heard(one)
	require.True(t, a.Up)
	require.Equal(t, one.Addr(1), a.Endpoints.UDP.Addr())
	require.Empty(t, nothing)
}
