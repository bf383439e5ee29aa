package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// What a call allocates is what it hands out: the payload of the answer at the
// client, the request at the server.
func TestCallAllocates(t *testing.T) {
	skipIfRaced(t)
	d := someiptest.NewDomain(t)
	offer(t, d.Start(1), newServer())
	c := client(t, d.Start(2))
	available(t, c, true)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	payload := make([]byte, 8)
	n := testing.AllocsPerRun(500, func() { _, _ = c.Call(ctx, echo, false, payload) })
	require.LessOrEqual(t, n, 2.0)
}

func TestNotifyDoesNotAllocate(t *testing.T) {
	skipIfRaced(t)
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	c := client(t, d.Start(2))
	got := make(chan struct{}, 1)
	_, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: group, Events: []uint16{event}, OnEvent: func(runtime.Notification) { got <- struct{}{} },
	})
	require.NoError(t, err)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	payload := make([]byte, 8)
	require.Zero(t, testing.AllocsPerRun(500, func() {
		_ = o.Notify(event, payload)
		<-got
	}))
}

func skipIfRaced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("buffers are pooled, and the race detector has pools forget")
	}
}
