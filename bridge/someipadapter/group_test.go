package someipadapter_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/someipadapter"
	"carisma.dev/gateway/codegen/model"
	ifaceproto "carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip/runtime"
)

// door is an imported door, its events, and who sends them.
type door struct {
	bridge.Service
	opened, angle, lock *model.Event
	offering            *runtime.Offering
}

func newDoor(t *testing.T) door {
	t.Helper()
	set, err := ifaceproto.Load("testdata")
	require.NoError(t, err)
	iface := set.Interface("test.door.v1.Door")
	d := newDomain(t)
	offering, err := d.host(t, 2).Offer(runtime.ServiceConfig{
		Service: 0x6001, Instance: 1, Major: 1, UDPPort: runtime.AutoPort, TCPPort: runtime.AutoPort,
		Events: []runtime.EventConfig{
			{ID: 0x8001, Eventgroups: []uint16{1}},
			{ID: 0x8002, Eventgroups: []uint16{2, 1}, Field: true},
			{ID: 0x8003, Eventgroups: []uint16{3}, Field: true, Reliable: true},
		},
	})
	require.NoError(t, err)
	require.NoError(t, offering.SetField(0x8002, []byte{10}))
	require.NoError(t, offering.SetField(0x8003, []byte{1}))

	interfaces := bridge.NewInterfaces()
	require.NoError(t, interfaces.Add(iface, nil))
	adapter := someipadapter.New(someipadapter.Config{Network: d.host(t, 1), Interfaces: interfaces})
	ctx, cancel := context.WithCancel(context.Background())
	offers := make(chan bridge.Offer)
	var run sync.WaitGroup
	run.Go(func() { _ = adapter.Import(ctx, offers) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	o := receive(t, offers)
	return door{
		Service: o.Service, offering: offering,
		opened: iface.Events[0], angle: iface.Fields[0].Notifier, lock: iface.Fields[1].Notifier,
	}
}

// watch watches an event until the test ends or stop is called.
func (d door) watch(t *testing.T, e *model.Event) (items chan bridge.Item, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	items = make(chan bridge.Item, 64)
	var run sync.WaitGroup
	run.Go(func() { _ = d.Watch(ctx, e, func(it bridge.Item) { items <- it }) })
	stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(stop)
	return items, stop
}

func (d door) subscribers(event uint16, n int) func() bool {
	return func() bool { return d.offering.Subscribers(event) == n }
}

// A watcher that joins a subscription gets the current value of a field, though
// the server sends no initial event then.
func TestFieldInSharedEventgroup(t *testing.T) {
	d := newDoor(t)
	opened, stopOpened := d.watch(t, d.opened)
	eventually(t, d.subscribers(0x8001, 1), "subscription")
	require.NoError(t, d.offering.Notify(0x8001, []byte{1}))
	require.Equal(t, []byte{8, 1}, receive(t, opened).Payload)

	angle, stopAngle := d.watch(t, d.angle)
	it := receive(t, angle)
	require.Equal(t, []byte{8, 10}, it.Payload)
	require.True(t, it.Initial)
	require.Equal(t, 1, d.offering.Subscribers(0x8002), "one subscription for all")
	require.NoError(t, d.offering.Notify(0x8002, []byte{20}))
	it = receive(t, angle)
	require.Equal(t, []byte{8, 20}, it.Payload)
	require.False(t, it.Initial)

	// The last watcher ends the subscription, and with it the value is forgotten.
	stopAngle()
	stopOpened()
	eventually(t, d.subscribers(0x8002, 0), "end of the subscription")
	require.NoError(t, d.offering.Notify(0x8002, []byte{30}))
	angle, _ = d.watch(t, d.angle)
	it = receive(t, angle)
	require.Equal(t, []byte{8, 30}, it.Payload)
	require.True(t, it.Initial)
	require.Empty(t, angle, "exactly once")
}

func TestFieldOverTCP(t *testing.T) {
	d := newDoor(t)
	lock, _ := d.watch(t, d.lock)
	it := receive(t, lock)
	require.Equal(t, []byte{8, 1}, it.Payload)
	require.True(t, it.Initial)
	require.NoError(t, d.offering.Notify(0x8003, []byte{0}))
	require.Empty(t, receive(t, lock).Payload, "false is the default")
}

// What cannot be decoded is lost, and the next item says so.
func TestUndecodableEvent(t *testing.T) {
	d := newDoor(t)
	opened, _ := d.watch(t, d.opened)
	eventually(t, d.subscribers(0x8001, 1), "subscription")
	require.NoError(t, d.offering.Notify(0x8001, nil))
	require.NoError(t, d.offering.Notify(0x8001, nil))
	require.NoError(t, d.offering.Notify(0x8001, []byte{3}))
	it := receive(t, opened)
	require.Equal(t, []byte{8, 3}, it.Payload)
	require.EqualValues(t, 2, it.Gap)
}
