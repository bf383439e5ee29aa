package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// note is a notification with its payload kept.
type note struct {
	event   uint16
	payload string
	initial bool
}

// consumer is a subscription with what it received.
type consumer struct {
	*runtime.Subscription
	notes  chan note
	states chan runtime.SubscriptionStatus
}

func subscribe(tb testing.TB, c *runtime.Client, cfg runtime.SubscribeConfig) *consumer {
	tb.Helper()
	s := &consumer{notes: make(chan note, 10_000), states: make(chan runtime.SubscriptionStatus, 100)}
	cfg.OnEvent = func(n runtime.Notification) { s.notes <- note{n.Event, string(n.Payload), n.Initial} }
	cfg.OnState = func(st runtime.SubscriptionStatus) { s.states <- st }
	var err error
	s.Subscription, err = c.Subscribe(context.Background(), cfg)
	require.NoError(tb, err)
	tb.Cleanup(s.Close)
	return s
}

// until waits for a state.
func (s *consumer) until(tb testing.TB, want runtime.SubscriptionState) runtime.SubscriptionStatus {
	tb.Helper()
	for {
		if st := receive(tb, s.states); st.State == want {
			return st
		}
	}
}

func TestEventsAndFields(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	require.NoError(t, o.SetField(field, []byte("first")))
	n := d.Start(2)
	c := client(t, n)
	s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
	s.until(t, runtime.SubscriptionActive)
	require.Equal(t, note{field, "first", true}, receive(t, s.notes), "SUB-7")

	require.NoError(t, o.Notify(event, []byte("bang")))
	require.Equal(t, note{event, "bang", true}, receive(t, s.notes))
	require.NoError(t, o.Notify(field, []byte("second")))
	require.Equal(t, note{field, "second", false}, receive(t, s.notes))
	require.ErrorIs(t, o.Notify(0x8FFF, nil), runtime.ErrUnknownEvent)
	require.ErrorIs(t, o.SetField(event, nil), runtime.ErrUnknownEvent)

	s.Close()
	eventually(t, func() bool { return o.Subscribers(event) == 0 }, "subscriber gone")
	require.NoError(t, o.Notify(event, []byte("nobody")))
	require.Empty(t, s.notes)
}

// Who subscribes before a field has a value gets the first one, however it is set.
func TestFirstValueAfterSubscription(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	s := subscribe(t, client(t, d.Start(2)), runtime.SubscribeConfig{Eventgroup: group})
	s.until(t, runtime.SubscriptionActive)
	require.NoError(t, o.SetField(field, []byte("first")))
	require.Equal(t, note{field, "first", true}, receive(t, s.notes))
	require.NoError(t, o.SetField(field, []byte("second")))
	require.NoError(t, o.Notify(field, []byte("third")))
	require.Equal(t, note{field, "third", false}, receive(t, s.notes))
}

// Renewals, which come with every offer, bring no initial value again.
func TestInitialValueExactlyOnce(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			o := offer(t, d.Start(1, someiptest.ShortLived), newServer())
			id, eventgroup := uint16(field), uint16(group)
			if reliable {
				id, eventgroup = tcpField, tcpGroup
			}
			require.NoError(t, o.Notify(id, []byte("v")))
			n := d.Start(2, someiptest.ShortLived)
			c := client(t, n)
			s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: eventgroup, Reliable: reliable, Unreliable: !reliable})
			require.Equal(t, note{id, "v", true}, receive(t, s.notes))
			// Two seconds of life need renewals: the time to live is one.
			sub := s.until(t, runtime.SubscriptionActive)
			eventually(t, func() bool { return n.DiscoveryStats().Received > 30 }, "renewals")
			require.Equal(t, sub, s.Status())
			require.Equal(t, 1, o.Subscribers(id))
			require.Empty(t, s.notes)

			// A second consumer shares the subscription.
			second := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: eventgroup, Reliable: reliable, Unreliable: !reliable})
			second.until(t, runtime.SubscriptionActive)
			require.Equal(t, 1, o.Subscribers(id))
			require.NoError(t, o.Notify(id, []byte("w")))
			require.Equal(t, note{id, "w", false}, receive(t, s.notes))
			require.Equal(t, note{id, "w", false}, receive(t, second.notes))
			s.Close()
			require.NoError(t, o.Notify(id, []byte("x")))
			require.Equal(t, note{id, "x", false}, receive(t, second.notes))
			require.Empty(t, s.notes)
		})
	}
}

func TestFieldWithoutValueSendsWhenItHasOne(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	s := subscribe(t, client(t, d.Start(2)), runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{field}})
	s.until(t, runtime.SubscriptionActive)
	require.NoError(t, o.Notify(event, []byte("not wanted")))
	require.NoError(t, o.Notify(field, []byte("v")))
	require.Equal(t, note{field, "v", true}, receive(t, s.notes))
}

func TestUnknownEventgroupIsRefused(t *testing.T) {
	d := someiptest.NewDomain(t)
	offer(t, d.Start(1), newServer())
	s := subscribe(t, client(t, d.Start(2)), runtime.SubscribeConfig{Eventgroup: 0x9999})
	st := s.until(t, runtime.SubscriptionRefused)
	require.Equal(t, runtime.ReasonRefused, st.Reason)
}

func TestSubscriptionEndsWithItsContext(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	c := client(t, d.Start(2))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := c.Subscribe(ctx, runtime.SubscribeConfig{Eventgroup: group})
	require.NoError(t, err)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	cancel()
	eventually(t, func() bool { return o.Subscribers(event) == 0 }, "unsubscribed")
	_, err = c.Subscribe(ctx, runtime.SubscribeConfig{Eventgroup: group})
	require.ErrorIs(t, err, context.Canceled)
}

// Many subscribers get every event, once and in order.
func TestFanOut(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	var all []*consumer
	for host := range byte(4) {
		all = append(all, subscribe(t, client(t, d.Start(10+host)), runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{event}}))
	}
	eventually(t, func() bool { return o.Subscribers(event) == len(all) }, "all subscribed")
	for i := range 100 {
		require.NoError(t, o.Notify(event, fmt.Append(nil, i)))
	}
	for _, s := range all {
		for i := range 100 {
			require.Equal(t, note{event, fmt.Sprint(i), i == 0}, receive(t, s.notes))
		}
	}
}

// Callbacks may call back into the package.
func TestCallbacksMayCallBack(t *testing.T) {
	d := someiptest.NewDomain(t)
	offer(t, d.Start(1), newServer())
	n := d.Start(2)
	got := make(chan string, 1)
	err := n.Observe(t.Context(), runtime.Filter{Service: 0xFFFF, Instance: 0xFFFF, Major: 0xFF}, func(a runtime.Availability) {
		if !a.Up {
			return
		}
		c, err := n.Client(a.Key)
		if err != nil {
			return
		}
		_, _ = c.Subscribe(t.Context(), runtime.SubscribeConfig{Eventgroup: group, OnState: func(s runtime.SubscriptionStatus) {
			if s.State == runtime.SubscriptionActive {
				_ = c.Close()
				got <- "active"
			}
		}})
	})
	require.NoError(t, err)
	require.Equal(t, "active", receive(t, got))
}
