package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/someiptest"
)

func TestAwait(t *testing.T) {
	d := someiptest.NewDomain(t)
	c := client(t, d.Start(2))
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Await(short), context.DeadlineExceeded)
	offer(t, d.Start(1), newServer())
	require.NoError(t, c.Await(t.Context()))
	require.NoError(t, c.Await(t.Context()), "it is there")
}
