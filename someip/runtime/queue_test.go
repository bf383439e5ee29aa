package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// A consumer that takes its time loses the oldest of what waits, hears how many, and
// has the newest value of each field in the end.
func TestSlowConsumer(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	require.NoError(t, o.SetField(field, []byte("old")))
	n := d.Start(2)
	c := client(t, n)
	type item struct {
		note
		gap uint32
	}
	got, busy := make(chan item, 100), make(chan struct{})
	_, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: group, Queue: 4,
		OnEvent: func(n runtime.Notification) {
			got <- item{note{n.Event, string(n.Payload), n.Initial}, n.Gap}
			<-busy
		},
	})
	require.NoError(t, err)
	require.Equal(t, item{note{field, "old", true}, 0}, receive(t, got))
	quick := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
	quick.until(t, runtime.SubscriptionActive)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	require.NoError(t, o.Notify(field, []byte("new")))
	for i := range 10 {
		require.NoError(t, o.Notify(event, fmt.Append(nil, i)))
	}
	for range 11 {
		receive(t, quick.notes) // nobody else is held up
	}
	eventually(t, func() bool { return n.Stats().QueueDropped == 7 }, "dropped")
	close(busy)
	require.Equal(t, item{note{field, "new", false}, 7}, receive(t, got))
	require.Equal(t, item{note{event, "7", true}, 0}, receive(t, got), "initial is what is left of it")
	require.Equal(t, item{note{event, "8", false}, 0}, receive(t, got))
	require.Equal(t, item{note{event, "9", false}, 0}, receive(t, got))
}

// Events that come before the Ack, or before any offer was seen to be renewed, are
// delivered as soon as the subscription was asked for.
func TestEventsBeforeAck(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	p, server := newPeer(t, d.SD(1)), newPeer(t, d.AddrPort(1, 0))
	m := someip.NewNotification(key.Service, event, key.Major, 1, []byte("early")).Append(nil)
	s := subscribe(t, client(t, n), runtime.SubscribeConfig{Eventgroup: group})
	p.offer(d, server.Addr(), 1)
	entry, options := p.ReceiveSD(0x06)
	server.Send(options[0].Endpoint, m)
	require.Equal(t, note{event, "early", true}, receive(t, s.notes))
	p.ack(d, entry, 2)
	s.until(t, runtime.SubscriptionActive)
}

// A peer that is seen at two addresses, announcing the same instance from both, is one
// instance: it does not come and go.
func TestPeerAtTwoAddresses(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	changes := observe(t, n, key)
	first, second := newPeer(t, d.SD(1)), newPeer(t, d.SD(3))
	server := newPeer(t, d.AddrPort(1, 0))
	for session := range uint16(5) {
		first.offer(d, server.Addr(), 1+session)
		second.offer(d, server.Addr(), 1+session)
	}
	eventually(t, func() bool { return n.DiscoveryStats().Received == 10 }, "offers")
	require.True(t, receive(t, changes).Up)
	require.Empty(t, changes)
}
