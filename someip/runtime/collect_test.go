package runtime_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// Calls and events that are collected all arrive, one at a time and many at once; a
// message alone does not wait for others.
func TestCollect(t *testing.T) {
	d := someiptest.NewDomain(t)
	m := map[uint16]runtime.MessageConfig{echo: {Collect: true}, event: {Collect: true}}
	deploy := func(n *runtime.Network) *runtime.Network {
		t.Helper()
		require.NoError(t, n.Deploy(runtime.Deployment{Instance: key, Requests: m, Responses: m, Events: m}))
		return n
	}
	o := offer(t, deploy(d.Start(1)), newServer())
	c := client(t, deploy(d.Start(2)))
	available(t, c, true)
	call := func() {
		resp, err := c.Call(context.Background(), echo, false, []byte("x"))
		assert.NoError(t, err) // not on the goroutine of the test
		assert.Equal(t, "x", string(resp.Payload))
	}
	call()
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for range 50 {
				call()
			}
		})
	}
	work.Wait()

	var got atomic.Int64
	_, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: group, Events: []uint16{event}, OnEvent: func(runtime.Notification) { got.Add(1) },
	})
	require.NoError(t, err)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	for range 200 {
		require.NoError(t, o.Notify(event, make([]byte, 700)))
	}
	eventually(t, func() bool { return got.Load() == 200 }, "events")
}
