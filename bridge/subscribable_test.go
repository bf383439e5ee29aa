package bridge_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
)

// fakeSubscribable takes a request with each watch.
type fakeSubscribable struct {
	*fakeService
	requests chan string
}

func (s fakeSubscribable) Subscribe(ctx context.Context, e *model.Event, in []byte, opened func(), sink bridge.Sink) error {
	s.requests <- string(in)
	opened()
	return s.Watch(ctx, e, sink)
}

// A stream with a request is the watcher's own, and ends when the instance goes.
func TestSubscribable(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		fake := fakeSubscribable{newFakeService(), make(chan string, 2)}
		b.offerLeft(fake)
		svc, ok := b.mesh.service(leftName).(bridge.Subscribable)
		require.True(t, ok)
		opened, ended := make(chan struct{}, 2), make(chan error, 2)
		subscribe := func(ctx context.Context, in string) {
			go func() {
				ended <- svc.Subscribe(ctx, airQuality, []byte(in), func() { opened <- struct{}{} }, func(bridge.Item) {})
			}()
			<-opened
		}
		ctx, cancel := context.WithCancel(t.Context())
		subscribe(ctx, "one")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		subscribe(t.Context(), "two")
		require.Equal(t, "one", <-fake.requests)
		require.Equal(t, "two", <-fake.requests)

		since := time.Now()
		b.ecu.offers <- bridge.Offer{Instance: left(), Reason: "it went", Since: since}
		synctest.Wait()
		want := status.Unavailable("it went", since)
		require.Equal(t, want, <-ended)
		require.Equal(t, want, svc.Subscribe(t.Context(), airQuality, nil, nil, nil))
	})
}

func TestNotSubscribable(t *testing.T) {
	run(t, nil, func(b bench) {
		b.offerLeft(newFakeService())
		_, ok := b.mesh.service(leftName).(bridge.Subscribable)
		require.False(b.t, ok, "a service without such streams has none when it is shared")
	})
}
