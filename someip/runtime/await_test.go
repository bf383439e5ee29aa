package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/someiptest"
)

func TestAwait(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	c := client(t, n)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Await(short), context.DeadlineExceeded)
	require.ErrorContains(t, c.Await(short), c.Key().String()+" is not offered")
	offer(t, d.Start(1), newServer())
	require.NoError(t, c.Await(t.Context()))
	require.NoError(t, c.Await(t.Context()), "it is there")
	anyOf := someip.InstanceKey{Service: c.Key().Service, Instance: someip.AnyInstance, Major: someip.AnyMajor}
	a, err := n.Await(t.Context(), anyOf)
	require.NoError(t, err)
	require.Equal(t, c.Key(), a.Key)
	require.Equal(t, c.Availability().Endpoints, a.Endpoints)
}
