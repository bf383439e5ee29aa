package sd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// count returns how many lines of the trace are want, and empties it.
func (b *bench) count(want string) (n int) {
	for _, line := range b.trace {
		if line == fmt.Sprintf("%v %s", b.now.Sub(b.start), want) {
			n++
		}
	}
	b.trace, b.acts = nil, nil
	return n
}

// A peer that floods has room of its own only: what another offers and subscribes to
// is taken in the same second.
func TestFloodOfEntries(t *testing.T) {
	b := offering(t, func(c *sd.Config) {
		c.Limits.OffersPerPeer, c.Limits.SubscribersPerPeer, c.Limits.EntriesPerSecond = 10, 2, 50
	})
	rogue, peer := b.host(ap("10.0.0.66:30490")), b.host(server)
	for i := range uint16(60) {
		rogue.toAll(offer(someip.InstanceKey{Service: 0x4000 + i, Instance: 1}, 3, udp("10.0.0.66:1")))
	}
	for range 60 {
		rogue.toUs(sub(climate, 1, 3, udp("10.0.0.66:4000")))
	}
	require.Len(t, availableNow(b), 10)
	require.EqualValues(t, 40, b.m.Stats().OfferLimit)
	require.EqualValues(t, 70, b.m.Stats().EntryLimit)
	b.trace, b.acts = nil, nil

	peer.toAll(offer(door, 3, udp("10.0.0.2:1"))).expect("available 2000.0007 v2 udp:10.0.0.2:1")
	b.host(client).toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")

	// A second later the rogue is heard again.
	b.now = b.now.Add(time.Second)
	rogue.toUs(sub(climate, 1, 3, udp("10.0.0.66:4000")))
	require.EqualValues(t, 70, b.m.Stats().EntryLimit)
}

// Offers at a high rate make no Subscribes at that rate, and end no subscription.
func TestFloodOfOneOffer(t *testing.T) {
	b, h := subscribed(t)
	limit := sd.DefaultConfig().Limits.RenewalsPerSecond
	b.now = b.now.Add(time.Second)
	sent := 0
	for range 1000 {
		h.toAll(climateUp(30))
		if n := b.count(subscribe1); n > 0 {
			sent += n
			h.toUs(ack(climate, 1, 5)).expect()
		}
	}
	require.Equal(t, limit, sent)
	require.EqualValues(t, 1000-limit, b.m.Stats().RenewalsSuppressed)
	b.now = b.now.Add(time.Second)
	h.toAll(climateUp(30)).expect(subscribe1)
}

// A server that refuses and offers again without end is asked as often only.
func TestFloodOfRefusals(t *testing.T) {
	b, h := subscribed(t)
	b.now = b.now.Add(time.Second)
	asked := 0
	for range 1000 {
		h.toAll(climateUp(30))
		if n := b.count(subscribe1); n > 0 {
			asked += n
			h.toUs(ack(climate, 1, 0))
			b.trace, b.acts = nil, nil
		}
	}
	require.Equal(t, sd.DefaultConfig().Limits.RenewalsPerSecond, asked)
}

// Entries that contradict each other count in their order, and an instance that
// comes and goes does so a few times a second for us: in one message, with another
// endpoint each time, or with restarts of its host. The next second settles it.
func TestContradictingOffers(t *testing.T) {
	const up = "available 2000.0007 v2 udp:10.0.0.2:1"
	limit := sd.DefaultConfig().Limits.ReturnsPerSecond
	there, gone := offer(door, 3, udp("10.0.0.2:1")), offer(door, 0)

	b := newBench(t)
	h := b.host(server)
	h.toAll(there, gone, there).expect(up, "unavailable 2000.0007 v2: stopped", up)
	for range 100 {
		h.toAll(gone, there)
	}
	require.Equal(t, limit-2, b.count(up))
	require.Empty(t, availableNow(b))
	require.EqualValues(t, 102-limit, b.m.Stats().ReturnsSuppressed)
	other := b.host(client)
	other.toAll(offer(climate, 3, udp("10.0.0.3:1"))).expect("available 1234.0001 v1 udp:10.0.0.3:1")
	b.now = b.now.Add(time.Second)
	h.toAll(there).expect(up)

	b = newBench(t)
	h = b.host(server)
	for i := range 100 {
		h.toAll(offer(door, 3, udp(fmt.Sprintf("10.0.0.2:%d", 1+i))))
	}
	require.Len(t, availableNow(b), 1)
	require.EqualValues(t, 99-limit, b.m.Stats().ReturnsSuppressed)
	require.EqualValues(t, 1+limit, availableNow(b)[0].Endpoints.UDP.Port())

	b = newBench(t)
	h = b.host(server)
	for i := range 100 {
		b.now = b.now.Add(time.Millisecond)
		h.restart()
		h.toAll(offer(door, uint32(3+i), udp("10.0.0.2:1")))
	}
	require.LessOrEqual(t, len(b.trace), 100+2*(limit+1))
	require.EqualValues(t, 100-limit, b.m.Stats().ReturnsSuppressed)

	// Two endpoints in one entry are no offer at all, and none of the others' business.
	b = newBench(t)
	b.host(server).toAll(offer(door, 3, udp("10.0.0.2:1"), udp("10.0.0.2:2")), offer(climate, 3, udp("10.0.0.2:3"))).
		expect("available 1234.0001 v1 udp:10.0.0.2:3")
	require.EqualValues(t, 1, b.m.Stats().BadEntries)
}

// Subscriptions with many ports are one, with many eventgroups a few, and renewals
// are renewals.
func TestFloodOfSubscriptions(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	for i := range 1000 {
		h.toUs(sub(climate, 1, 3, udp(fmt.Sprintf("10.0.0.3:%d", 1+i))))
	}
	b.trace, b.acts = nil, nil
	b.did(b.m.StopOffer(b.now, climate))
	require.Len(t, b.trace, 2, "the StopOffer and the last one")
	require.Contains(t, b.trace[1], "udp:10.0.0.3:1000 removed")

	b = offering(t)
	h = b.host(client)
	for i := range 1000 {
		h.toUs(sub(climate, uint16(0x100+i), 3, udp(clientUDP)))
	}
	limit := uint64(sd.DefaultConfig().Limits.NacksPerSecond)
	require.Equal(t, limit, b.m.Stats().NacksSent)
	require.Equal(t, 1000-limit, b.m.Stats().NacksSuppressed)
	b.trace, b.acts = nil, nil
	b.host(server).toUs(sub(climate, 9, 3, udp("10.0.0.2:1"))).expect("to 10.0.0.2: Nack 1234.0001 v1 0009")

	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	for range 1000 {
		h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
	}
}

// Finds are answered so often to one peer, by unicast and by multicast, and to
// another all the same.
func TestFloodOfFinds(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.Limits.AnswersPerSecond = 5 })
	h := b.host(client)
	for range 100 {
		h.toUs(find(someip.InstanceKey{Service: climate.Service, Instance: someip.AnyInstance, Major: someip.AnyMajor}))
	}
	require.Equal(t, 5, b.count(answer))
	require.EqualValues(t, 95, b.m.Stats().AnswersSuppressed)
	h.toAll(find(climate)).run(50 * time.Millisecond).expect()
	b.host(server).toUs(find(climate)).expect("to 10.0.0.2: Offer 1234.0001 v1" + climateEndpoints)
	b.now = b.now.Add(time.Second)
	h.toUs(find(climate))
	require.Equal(t, 1, b.count(answer))
}

// SV-4, the rule that is an option: half a cycle after the last multicast offer
// answers go by multicast, and one answers all who wait.
func TestMulticastAnswers(t *testing.T) {
	const all = "to all: Offer 1234.0001 v1" + climateEndpoints
	b := offering(t, func(c *sd.Config) { c.MulticastAnswers = true })
	h, other := b.host(client), b.host(server)
	h.toAll(find(climate)).run(20 * time.Millisecond).expect("420ms " + answer) // offered 70 ms ago
	b.run(480 * time.Millisecond)
	h.toAll(find(climate))
	other.toAll(find(climate))
	b.run(100 * time.Millisecond).expect("920ms " + all)
	h.toUs(find(climate)).expect("1s " + answer)
	b.run(400 * time.Millisecond).expect("1.35s " + all) // the cycle
}

// What claims to be at our own address is ignored, counted and told, once a minute
// of each peer.
func TestOwnAddressClaimed(t *testing.T) {
	b := offering(t)
	h := b.host(server)
	claim := offer(door, 3, udp("10.0.0.1:1"))
	const told = "own address 10.0.0.1:1 claimed by 10.0.0.2:30490 for 2000.0007 v2"
	h.toAll(claim).expect(told)
	h.toAll(claim).expect()
	require.EqualValues(t, 2, b.m.Stats().OwnEndpoint)
	b.now = b.now.Add(time.Minute)
	h.toAll(claim).expect(told)
	h.toUs(sub(climate, 1, 3, udp("10.0.0.1:4000"))).expect("to 10.0.0.2: Nack 1234.0001 v1 0001")

	// Our own words come back from the group and are no news, those of another port are.
	echo := b.host(own)
	echo.toAll(claim).expect()
	stranger := b.host(ap("10.0.0.1:4711"))
	stranger.toAll(claim).expect("own address 10.0.0.1:4711 claimed by 10.0.0.1:4711 for 0000.0000 v0")
	stranger.toAll(claim).expect()
	require.EqualValues(t, 3, b.m.Stats().Own)
	require.Empty(t, availableNow(b))
}

// Single instances have TTL factors of their own.
func TestTTLFactorsOfInstances(t *testing.T) {
	factors := []sd.TTLFactor{{Service: climate.Service, Instance: climate.Instance, Factor: 5}}
	b := newBench(t, func(c *sd.Config) { c.OfferTTLFactors = factors })
	b.host(server).toAll(climateUp(3), offer(door, 3, udp("10.0.0.2:1")))
	b.run(16 * time.Second)
	require.Contains(t, b.trace, "3.05s unavailable 2000.0007 v2: expired")
	require.Contains(t, b.trace, "15.05s unavailable 1234.0001 v1: expired")

	b = offering(t, func(c *sd.Config) { c.SubscriptionTTLFactors = factors })
	b.host(client).toUs(sub(climate, 1, 3, udp(clientUDP)))
	b.run(14 * time.Second)
	for _, line := range b.trace {
		require.NotContains(t, line, "removed")
	}
	b.run(2 * time.Second)
	require.Contains(t, fmt.Sprint(b.trace), "removed: expired")

	bad := testConfig()
	bad.OfferTTLFactors = []sd.TTLFactor{{Service: 1, Instance: 1}}
	require.ErrorIs(t, bad.Validate(), sd.ErrConfig)
}
