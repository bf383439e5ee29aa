package bridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
)

// watcher is a watch that a test can end.
type watcher struct {
	items  []bridge.Item
	cancel context.CancelFunc
	ended  chan error
}

func watch(t *testing.T, svc bridge.Service, e *model.Event) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{cancel: cancel, ended: make(chan error, 1)}
	go func() { w.ended <- svc.Watch(ctx, e, func(it bridge.Item) { w.items = append(w.items, it) }) }()
	synctest.Wait()
	return w
}

func TestSharedWatchesShareOneUpstream(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		fake := newFakeService()
		b.offerLeft(fake)
		svc := b.mesh.service(leftName)

		one := watch(t, svc, airQuality)
		two := watch(t, svc, airQuality)
		fake.publish(airQuality, item(1))
		one.cancel()
		require.ErrorIs(t, <-one.ended, context.Canceled)
		fake.publish(airQuality, item(2))
		require.Equal(t, []bridge.Item{item(1)}, one.items)
		require.Equal(t, []bridge.Item{item(1), item(2)}, two.items)

		three := watch(t, svc, airQuality)
		require.Empty(t, three.items, "an event has no history")
		watching, watches := fake.counts()
		require.Equal(t, 1, watching)
		require.Equal(t, 1, watches)

		two.cancel()
		three.cancel()
		synctest.Wait()
		watching, _ = fake.counts()
		require.Zero(t, watching, "the last watcher ends the upstream watch")
	})
}

// A field's watcher gets the current value first, exactly once, whether it is
// known already or comes from upstream.
func TestSharedFieldValue(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		fake := newFakeService()
		b.offerLeft(fake)
		svc := b.mesh.service(leftName)
		notifier := temperature.Notifier

		one := watch(t, svc, notifier)
		two := watch(t, svc, notifier)
		require.Empty(t, two.items, "the value is not known yet")
		initial := bridge.Item{Payload: []byte{20}, Initial: true}
		fake.publish(notifier, initial)
		fake.publish(notifier, bridge.Item{Payload: []byte{21}, Gap: 3})
		three := watch(t, svc, notifier)
		require.Equal(t, []bridge.Item{{Payload: []byte{21}, Initial: true}}, three.items)
		fake.publish(notifier, item(22))
		require.Equal(t, []bridge.Item{initial, {Payload: []byte{21}, Gap: 3}, item(22)}, one.items)
		require.Equal(t, one.items, two.items)
		require.Equal(t, []bridge.Item{{Payload: []byte{21}, Initial: true}, item(22)}, three.items)

		one.cancel()
		two.cancel()
		three.cancel()
		synctest.Wait()
		four := watch(t, svc, notifier)
		require.Empty(t, four.items, "what is not subscribed is not known")
		four.cancel()
	})
}

func TestSharedUpstreamEnds(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		fake := newFakeService()
		b.offerLeft(fake)
		svc := b.mesh.service(leftName)
		one, two := watch(t, svc, airQuality), watch(t, svc, airQuality)
		fake.end <- errEnd
		require.ErrorIs(t, <-one.ended, errEnd)
		require.ErrorIs(t, <-two.ended, errEnd)
		three := watch(t, svc, airQuality)
		_, watches := fake.counts()
		require.Equal(t, 2, watches)
		three.cancel()
	})
}

func TestKeepWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeService()
		ctx, cancel := context.WithCancel(t.Context())
		var ends []error
		done := make(chan struct{})
		go func() {
			defer close(done)
			bridge.KeepWatching(ctx, fake, airQuality, func(bridge.Item) {}, func(err error) { ends = append(ends, err) })
		}()
		reset := errors.New("stream reset")
		for range 5 {
			fake.end <- reset
			time.Sleep(time.Minute)
		}
		// Who had an item is back soon, however often the watch ended before.
		fake.publish(airQuality, item(1))
		fake.end <- reset
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		_, watches := fake.counts()
		require.Equal(t, 7, watches)
		cancel()
		<-done
		require.Equal(t, []error{reset, reset, reset, reset, reset, reset}, ends)
	})
}
