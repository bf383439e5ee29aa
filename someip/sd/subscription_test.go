package sd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

const (
	subscribe1 = "to 10.0.0.2: Subscribe 1234.0001 v1 0001 udp:10.0.0.1:4000"
	pair1      = "to 10.0.0.2: StopSubscribe 1234.0001 v1 0001 udp:10.0.0.1:4000; Subscribe 1234.0001 v1 0001 udp:10.0.0.1:4000"
	acked1     = "acked 1234.0001 v1 eventgroup 0001"
	lost1      = "lost 1234.0001 v1 eventgroup 0001: "
)

func wanted(eventgroup uint16) sd.Subscription {
	return sd.Subscription{Key: sd.SubscriptionKey{Instance: climate, Eventgroup: eventgroup}, UDP: ap("10.0.0.1:4000")}
}

// subscribed is a bench with an acknowledged subscription to climate at server.
func subscribed(t *testing.T, change ...func(*sd.Config)) (*bench, *host) {
	t.Helper()
	b := newBench(t, change...)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1))).expect()
	h.toAll(climateUp(30)).expect(up, subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	return b, h
}

// SUB-2: a subscription is renewed with each multicast offer, and by nothing
// else. Case 35: the renewal is no new subscription.
func TestRenewal(t *testing.T) {
	b, h := subscribed(t)
	for range 3 {
		b.run(time.Second)
		h.toAll(climateUp(30)).expect(subscribe1)
		h.toUs(ack(climate, 1, 5)).expect()
		h.toUs(climateUp(30)).expect() // an offer by unicast renews nothing
	}
}

// Case 85: at once if the instance is offered.
func TestCase85SubscribeAtOnce(t *testing.T) {
	b := newBench(t)
	b.host(server).toAll(climateUp(30)).expect(up)
	b.run(500 * time.Millisecond)
	b.must(b.m.Subscribe(b.now, wanted(1))).expect("500ms " + subscribe1)
	require.EqualValues(t, 5, func() uint32 {
		b.must(b.m.Subscribe(b.now, wanted(2)))
		return b.sends()[0].Entries[0].TTL
	}())
}

// SUB-6: a missing Ack is answered by StopSubscribe and Subscribe on the next
// multicast offer, never on one by unicast.
func TestMissingAck(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toUs(climateUp(30)).expect(up, subscribe1)
	h.toAll(climateUp(30)).expect() // the Ack may be on its way
	b.run(100 * time.Millisecond)
	h.toUs(climateUp(30)).expect()
	h.toAll(climateUp(30)).expect(pair1)
	b.run(100 * time.Millisecond)
	h.toAll(climateUp(30)).expect(pair1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	h.toAll(climateUp(30)).expect(subscribe1)
}

// SUB-6: where both ends control initial data, the flag replaces the pair.
func TestMissingAckExplicit(t *testing.T) {
	const initial = "to 10.0.0.2: Subscribe 1234.0001 v1 0001 initial udp:10.0.0.1:4000"
	b := newBench(t, func(c *sd.Config) { c.InitialDataControl = true })
	h := b.host(server)
	h.flags |= sd.FlagInitialData
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toAll(climateUp(30)).expect(up, initial)
	b.run(100 * time.Millisecond)
	h.toAll(climateUp(30)).expect(initial)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	h.toAll(climateUp(30)).expect(subscribe1)
}

// CL-6: all Subscribes that one message triggers go out in one.
func TestSubscribesArePacked(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	b.must(b.m.Subscribe(b.now, wanted(2)))
	other := wanted(9)
	other.Key.Instance = door
	b.must(b.m.Subscribe(b.now, other))
	b.host(server).toAll(climateUp(3), offer(door, 3, udp("10.0.0.2:3000"))).expect(
		up, "available 2000.0007 v2 udp:10.0.0.2:3000",
		subscribe1+"; Subscribe 1234.0001 v1 0002 udp:10.0.0.1:4000; Subscribe 2000.0007 v2 0009 udp:10.0.0.1:4000")
}

// CL-6: a StopSubscribe and its Subscribe stay together when a message is full.
func TestPairsStayTogether(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	for i := range uint16(100) {
		b.must(b.m.Subscribe(b.now, wanted(i+1)))
	}
	h.toAll(climateUp(30))
	b.sends()
	b.run(100 * time.Millisecond)
	h.toAll(climateUp(30))
	sends := b.sends()
	require.Len(t, sends, 3)
	for _, m := range sends {
		require.Zero(t, len(m.Entries)%2)
		for i := 0; i < len(m.Entries); i += 2 {
			require.Zero(t, m.Entries[i].TTL)
			require.NotZero(t, m.Entries[i+1].TTL)
			require.Equal(t, m.Entries[i].Eventgroup, m.Entries[i+1].Eventgroup)
		}
	}
}

// 9.1: Subscribes that a multicast offer triggers may wait, together.
// PH-4.
func TestSubscribeDelay(t *testing.T) {
	b := newBench(t, func(c *sd.Config) {
		c.SubscribeDelayMin, c.SubscribeDelayMax = 10*time.Millisecond, 50*time.Millisecond
	})
	b.must(b.m.Subscribe(b.now, wanted(1)))
	b.must(b.m.Subscribe(b.now, wanted(2)))
	h := b.host(server)
	h.toAll(climateUp(30)).expect(up)
	h.toAll(climateUp(30)).expect()
	wait, ok := b.m.Next()
	require.True(t, ok)
	require.GreaterOrEqual(t, wait.Sub(b.now), 10*time.Millisecond)
	require.LessOrEqual(t, wait.Sub(b.now), 50*time.Millisecond)
	b.run(50 * time.Millisecond).expect(subscribe1 + "; Subscribe 1234.0001 v1 0002 udp:10.0.0.1:4000")
	b.run(100 * time.Millisecond)
	h.toAll(climateUp(30)) // unacknowledged
	b.run(50 * time.Millisecond)
	require.Len(t, b.sends()[0].Entries, 4)
	h.toAll(climateUp(30))
	h.toAll(offer(climate, 0)).run(50 * time.Millisecond).expect(gone + "stopped")
}

// Case 98, SUB-11: a Nack is told; the next offer is another try, and no sooner.
func TestCase98Nack(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toAll(climateUp(30)).expect(up, subscribe1)
	h.toUs(ack(climate, 1, 0)).expect("nacked 1234.0001 v1 eventgroup 0001")
	h.toUs(ack(climate, 1, 0)).expect()
	require.EqualValues(t, 1, b.m.Stats().UnknownAcks)
	b.run(900 * time.Millisecond).expect()
	h.toAll(climateUp(30)).expect(subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	// Refusing a renewal ends the subscription.
	h.toAll(climateUp(30)).expect(subscribe1)
	h.toUs(ack(climate, 1, 0)).expect("nacked 1234.0001 v1 eventgroup 0001")
	h.toAll(climateUp(30)).expect(subscribe1)
}

// Acks that answer nothing are counted: of another peer, counter, eventgroup.
func TestUnknownAcks(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toUs(ack(climate, 1, 5)).expect() // nothing offered
	h.toAll(climateUp(30)).expect(up, subscribe1)
	b.host(client).toUs(ack(climate, 1, 5)).expect()
	h.toUs(ack(climate, 2, 5), ack(door, 1, 5), changed(ack(climate, 1, 5), func(e *entry) { e.Counter = 1 })).expect()
	require.EqualValues(t, 5, b.m.Stats().UnknownAcks)
}

// Case 56: after each return of the instance everything wanted is subscribed
// again, whatever made it go.
func TestCase56SubscribeAgain(t *testing.T) {
	t.Run("stopped", func(t *testing.T) {
		_, h := subscribed(t)
		h.toAll(offer(climate, 0)).expect(lost1+"stopped", gone+"stopped")
		h.toAll(climateUp(30)).expect(up, subscribe1)
		h.toUs(ack(climate, 1, 5)).expect(acked1)
	})
	t.Run("restarted", func(t *testing.T) {
		b, h := subscribed(t)
		b.run(100 * time.Millisecond)
		h.restart()
		h.toAll(climateUp(30)).expect("rebooted 10.0.0.2", lost1+"peer restarted", gone+"peer restarted", up, subscribe1)
		h.toUs(ack(climate, 1, 5)).expect(acked1)
	})
	t.Run("expired", func(t *testing.T) {
		b, h := subscribed(t)
		h.toAll(climateUp(1)).expect(subscribe1)
		h.toUs(ack(climate, 1, 5)).expect()
		b.run(1050*time.Millisecond).expect(lost1+"expired", gone+"expired")
		// The server may know the old subscription still: start afresh, to get
		// initial events.
		h.toAll(climateUp(30)).expect(up, pair1)
	})
	t.Run("moved", func(t *testing.T) {
		_, h := subscribed(t)
		h.toAll(offer(climate, 30, udp("10.0.0.2:3100"))).expect(lost1+"moved", gone+"moved",
			"available 1234.0001 v1 udp:10.0.0.2:3100", pair1)
	})
}

// Case 62: what we subscribed to expires here as it does at the server; the next
// offer subscribes again.
func TestCase62SubscriptionExpires(t *testing.T) {
	b, h := subscribed(t)
	b.run(5050 * time.Millisecond)
	require.Contains(t, b.trace, "5.05s "+lost1+"expired")
	b.trace = nil
	h.toUs(climateUp(30)).expect(pair1)
	h.toUs(ack(climate, 1, sd.TTLForever)).expect(acked1)
	b.trace = nil
	b.run(20 * time.Second)
	for _, line := range b.trace {
		require.Contains(t, line, "rejoin")
	}
}

// SUB-13.
func TestUnsubscribe(t *testing.T) {
	b, h := subscribed(t)
	key := wanted(1).Key
	b.did(b.m.Unsubscribe(b.now, key, key)).expect("to 10.0.0.2: StopSubscribe 1234.0001 v1 0001 udp:10.0.0.1:4000")
	h.toAll(climateUp(30)).expect()
	h.toUs(ack(climate, 1, 5)).expect()
	// Without an offer there is nobody to tell.
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toAll(offer(climate, 0))
	b.trace = nil
	b.did(b.m.Unsubscribe(b.now, key)).expect()
}

// Who gives up a subscription while its server is silent, and subscribes again when
// it is back, gets the initial events again (SUB-6): the server may have heard
// nothing of it, and takes a mere Subscribe for a renewal.
func TestSubscribeAfterSilence(t *testing.T) {
	b, h := subscribed(t)
	key := wanted(1).Key
	h.toAll(climateUp(3))
	b.run(3050 * time.Millisecond)
	b.trace = nil
	b.did(b.m.Unsubscribe(b.now, key)).expect()
	h.toAll(climateUp(30))
	b.trace = nil
	b.must(b.m.Subscribe(b.now, wanted(1))).expect(pair1)
	h.toUs(ack(climate, 1, 5))

	// Once the server has forgotten it, a Subscribe is a new one.
	h.toAll(climateUp(1))
	b.run(1050 * time.Millisecond)
	b.did(b.m.Unsubscribe(b.now, key))
	b.run(6 * time.Second)
	h.toAll(climateUp(30))
	b.trace = nil
	b.must(b.m.Subscribe(b.now, wanted(1))).expect("to 10.0.0.2: Subscribe 1234.0001 v1 0001 udp:10.0.0.1:4000")
}

// A subscription that changes its endpoint replaces the first, in one message.
func TestSubscribeReplaces(t *testing.T) {
	b, _ := subscribed(t)
	b.must(b.m.Subscribe(b.now, wanted(1))).expect()
	s := wanted(1)
	s.UDP = ap("10.0.0.1:4100")
	b.must(b.m.Subscribe(b.now, s)).expect(
		"to 10.0.0.2: StopSubscribe 1234.0001 v1 0001 udp:10.0.0.1:4000; Subscribe 1234.0001 v1 0001 udp:10.0.0.1:4100")
}

func TestSubscribeRefused(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*sd.Subscription){
		"instance any": func(s *sd.Subscription) { s.Key.Instance.Instance = someip.AnyInstance },
		"eventgroup 0": func(s *sd.Subscription) { s.Key.Eventgroup = 0 },
		"no protocol":  func(s *sd.Subscription) { s.UDP = ap("0.0.0.0:0"); s.TCP = false },
		"TTL":          func(s *sd.Subscription) { s.TTL = 1 << 24 },
	} {
		s := wanted(1)
		change(&s)
		_, err := b.m.Subscribe(b.now, s)
		require.ErrorIs(t, err, sd.ErrSub, name)
	}
}

// Case 91: subscribe with what the offer supports; nothing in common is told.
func TestCase91Reliability(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	s := wanted(1)
	s.TCP = true
	b.must(b.m.Subscribe(b.now, s))
	h.toAll(climateUp(30)).expect(up, subscribe1) // no TCP there

	b.must(b.m.Subscribe(b.now, wanted(2)))
	b.trace = nil
	const mismatch = "mismatch 1234.0001 v1 eventgroup 0002: tcp:10.0.0.2:3001"
	h.toAll(offer(climate, 30, tcp("10.0.0.2:3001")))
	require.Contains(t, b.trace, "0s "+mismatch)
	b.trace = nil
	h.toAll(offer(climate, 30, tcp("10.0.0.2:3001")))
	require.NotContains(t, b.trace, "0s "+mismatch)
}

// SUB-14: groups are joined once for all that use them.
func TestMulticastGroups(t *testing.T) {
	const group = "224.225.226.233:32344"
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	b.must(b.m.Subscribe(b.now, wanted(2)))
	h.toAll(climateUp(30))
	b.trace = nil
	at := sd.MulticastOption(ap(group))
	h.toUs(ack(climate, 1, 5, at), ack(climate, 2, 5, at)).expect(
		"join "+group, acked1+" by "+group, "acked 1234.0001 v1 eventgroup 0002 by "+group)
	b.did(b.m.Unsubscribe(b.now, wanted(1).Key))
	b.expect("to 10.0.0.2: StopSubscribe 1234.0001 v1 0001 udp:10.0.0.1:4000")
	// The server changes its mind.
	h.toAll(climateUp(30))
	b.trace = nil
	const other = "224.225.226.234:32344"
	h.toUs(ack(climate, 2, 5, sd.MulticastOption(ap(other)))).expect(
		"join "+other, "leave "+group, "acked 1234.0001 v1 eventgroup 0002 by "+other)
	h.toAll(offer(climate, 0)).expect("leave "+other, "lost 1234.0001 v1 eventgroup 0002: stopped", gone+"stopped")
	// A group that is none is not joined.
	h.toAll(climateUp(30))
	b.trace = nil
	h.toUs(ack(climate, 2, 5, sd.MulticastOption(ap("10.0.0.9:1")))).expect("acked 1234.0001 v1 eventgroup 0002")
}
