package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// groups is the handler of an offering that knows nothing of its events.
type groups struct {
	joined, left chan runtime.Subscriber
}

func (g groups) Subscribe(s runtime.Subscriber)   { g.joined <- s }
func (g groups) Unsubscribe(s runtime.Subscriber) { g.left <- s }

// An offering whose eventgroups nobody described: it decides about each, sends
// events with the session ids they came with, and an endpoint with two eventgroups
// gets each event once.
func TestOpenEventgroups(t *testing.T) {
	d := someiptest.NewDomain(t)
	h := groups{make(chan runtime.Subscriber, 10), make(chan runtime.Subscriber, 10)}
	cfg := service(newServer())
	cfg.Events, cfg.Groups, cfg.Configuration = nil, h, []string{"colour=blue"}
	o, err := d.Start(1).Offer(cfg)
	require.NoError(t, err)
	n := d.Start(2)
	c := client(t, n)
	available(t, c, true)
	require.Equal(t, []string{"colour=blue"}, c.Availability().Configuration)

	notes := make(chan runtime.Notification, 10)
	states := make(chan runtime.SubscriptionState, 10)
	subscribe := func(group uint16) *runtime.Subscription {
		s, err := c.Subscribe(context.Background(), runtime.SubscribeConfig{
			Eventgroup: group, Unreliable: true, Reliable: true,
			OnEvent: func(n runtime.Notification) { n.Payload = nil; notes <- n },
			OnState: func(s runtime.SubscriptionStatus) { states <- s.State },
		})
		require.NoError(t, err)
		return s
	}
	s := subscribe(1)
	first := receive(t, h.joined)
	require.EqualValues(t, 1, first.Eventgroup)
	require.Equal(t, runtime.SubscriptionWaiting, receive(t, states))
	o.Accept(first)
	require.Equal(t, runtime.SubscriptionActive, receive(t, states))
	for _, reliable := range []bool{false, true} {
		require.NoError(t, o.NotifyGroup(1, runtime.GroupEvent{ID: 0x8001, Session: 77, Reliable: reliable, Payload: []byte("x")}))
		got := receive(t, notes)
		require.EqualValues(t, 77, got.Session)
		require.Equal(t, reliable, got.Reliable)
	}
	require.ErrorIs(t, o.NotifyGroup(1, runtime.GroupEvent{ID: 0x8001, Payload: make([]byte, 1401)}), runtime.ErrTooLarge)
	require.ErrorIs(t, o.NotifyGroup(1, runtime.GroupEvent{ID: 1}), runtime.ErrUnknownEvent)

	// A second eventgroup of the same endpoint: the first one serves it.
	other := subscribe(2)
	o.Accept(receive(t, h.joined))
	eventually(t, func() bool { return other.Status().State == runtime.SubscriptionActive }, "the second group is active")
	require.NoError(t, o.NotifyGroup(2, runtime.GroupEvent{ID: 0x8002, Session: 1}))
	require.NoError(t, o.NotifyGroup(1, runtime.GroupEvent{ID: 0x8003, Session: 2}))
	for range 2 { // both subscriptions of the instance hear it
		require.EqualValues(t, 0x8003, receive(t, notes).Event)
	}

	// A refresh is a new subscription.
	s.Refresh()
	require.EqualValues(t, 1, receive(t, h.left).Eventgroup)
	again := receive(t, h.joined)
	require.Equal(t, first, again)
	o.Accept(again)
	s.Close()
	require.Equal(t, first, receive(t, h.left))

	// What is refused.
	third := subscribe(3)
	o.Refuse(receive(t, h.joined))
	eventually(t, func() bool { return third.Status().State == runtime.SubscriptionRefused }, "the third group is refused")
	third.Close()
	other.Close()
	require.EqualValues(t, 2, receive(t, h.left).Eventgroup)
	require.EqualValues(t, someip.OK, call(t, c, echo, false, "x").Code)
}
