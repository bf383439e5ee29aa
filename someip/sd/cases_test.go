package sd_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// Faults of other stacks, by the numbers of the list of interop cases, that no
// other test of this package is about.

// Case 35: the Subscribe of each cycle is a renewal.
func TestCase35RenewalIsNotNew(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	for range 5 {
		b.run(100 * time.Millisecond)
		h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
	}
}

// Case 37: a Subscribe that refers to an unknown option besides its endpoint is
// acknowledged.
// FMT-7, FMT-14.
func TestCase37UnknownOption(t *testing.T) {
	unknown := sd.Option{Type: 0x77, Data: []byte{1, 2, 3, 4}}
	for _, options := range [][]sd.Option{{udp(clientUDP), unknown}, {unknown, udp(clientUDP)}} {
		b := offering(t)
		b.host(client).toUs(sub(climate, 1, 3, options...)).expect(ack1, subscriber1+" initial=true")
	}
}

// Case 43: IPv6 endpoints are endpoints.
// FMT-8.
func TestCase43IPv6(t *testing.T) {
	b := newBench(t, func(c *sd.Config) {
		c.Address, c.Group = ap("[fd53::1]:1").Addr(), ap("[ff14::1]:1").Addr()
		c.Subnet = netip.MustParsePrefix("fd53::/64")
	})
	h := b.host(ap("[fd53::a]:30490"))
	h.toAll(offer(climate, 3, udp("[fd53::a]:30509"))).expect("available 1234.0001 v1 udp:[fd53::a]:30509")
	b.must(b.m.Subscribe(b.now, sd.Subscription{
		Key: sd.SubscriptionKey{Instance: climate, Eventgroup: 1}, UDP: ap("[fd53::1]:4000"),
	})).expect("to fd53::a: Subscribe 1234.0001 v1 0001 udp:[fd53::1]:4000")
	h.toUs(ack(climate, 1, 5, sd.MulticastOption(ap("[ff14::9]:5000")))).expect(
		"join [ff14::9]:5000", acked1+" by [ff14::9]:5000")
}

// Case 52: the flag of the multicast path has wrapped away, that of unicast has
// not.
// RB-5.
func TestCase52FlagPerPath(t *testing.T) {
	b := newBench(t)
	for i := range uint16(5) {
		b.run(time.Second)
		b.did(b.m.Receive(b.now, server, true, encode(t, 7+i, sd.FlagUnicast, find(door))))
		b.did(b.m.Receive(b.now, server, false, encode(t, 3+i, sd.FlagUnicast|sd.FlagReboot, find(door))))
	}
	require.Zero(t, b.m.Stats().Reboots)
}

// Case 53: a client started first and has talked by unicast when the first
// multicast message of the server comes, with session 1.
func TestCase53FirstMulticast(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h.toUs(climateUp(3)).expect(up, subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	b.run(time.Second)
	h.toAll(climateUp(3)).expect(subscribe1)
	require.Zero(t, b.m.Stats().Reboots)
}

// Case 58: a server that restarted Nacks until it is ready; Finds stop with its
// Offer, and the next one brings the subscription.
func TestCase58RestartedServer(t *testing.T) {
	b, h := subscribed(t)
	b.did(b.m.Find(b.now, climate))
	b.run(time.Second)
	h.restart()
	h.toAll(climateUp(30)).expect("rebooted 10.0.0.2", lost1+"peer restarted", gone+"peer restarted", up, subscribe1)
	h.toUs(ack(climate, 1, 0)).expect("nacked 1234.0001 v1 eventgroup 0001")
	b.run(time.Second).expect()
	h.toAll(climateUp(30)).expect(subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
}

// Case 65: a Find says minor ANY, and one that does not is answered by an offer
// that is at least as new.
func TestCase65Minor(t *testing.T) {
	b := newBench(t)
	b.did(b.m.Find(b.now, climate)).run(60 * time.Millisecond)
	require.Equal(t, find(climate).Entry, b.sends()[0].Entries[0])

	b = offering(t) // minor 3
	b.host(client).toUs(changed(find(climate), func(e *entry) { e.Minor = 2 })).expect(answer)
}

// Case 64: the minor of an Offer has no say in whether a client subscribes.
// CL-7.
func TestCase64MinorMismatch(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Subscribe(b.now, wanted(1)))
	h := b.host(server)
	h.toAll(climateUp(3)).expect(up, subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	b.run(time.Second)
	h.toAll(changed(climateUp(3), func(e *entry) { e.Minor = 1 })).expect(up, subscribe1)
}

// Case 88: one endpoint for each protocol is right, two of one are not.
// EVT-3, FMT-12.
func TestCase88TwoEndpoints(t *testing.T) {
	b := offering(t)
	b.did(b.m.Accepted(b.now, ap("10.0.0.1:3001"), ap(clientTCP)))
	h := b.host(client)
	h.toUs(sub(climate, 4, 3, udp(clientUDP), tcp(clientTCP))).expect(
		"to 10.0.0.3: Ack 1234.0001 v1 0004",
		"subscriber 10.0.0.3 1234.0001 v1 0004.0 udp:10.0.0.3:4000 tcp:10.0.0.3:4001 initial=true")
	h.toUs(sub(climate, 1, 3, udp(clientUDP), udp("10.0.0.3:4100"))).expect(nack1)
}

// Case 89: an unknown eventgroup and a wrong major get a Nack.
func TestCase89UnknownEventgroup(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 0x9999, 3, udp(clientUDP))).expect("to 10.0.0.3: Nack 1234.0001 v1 9999")
	major := climate
	major.Major = 2
	h.toUs(sub(major, 1, 3, udp(clientUDP))).expect("to 10.0.0.3: Nack 1234.0001 v2 0001")
}

// Case 92: who was refused gets no events.
func TestCase92RefusedIsNoSubscriber(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	// Also when it had been accepted before.
	h.toUs(sub(climate, 1, 3, udp("10.9.9.9:1"))).expect(nack1, subscriber1+" removed: stopped")
	b.did(b.m.StopOffer(b.now, climate)).expect("to all: StopOffer 1234.0001 v1" + climateEndpoints)
}

// Case 100: two services on one port, one client endpoint: the ids decide.
func TestCase100SharedPort(t *testing.T) {
	b := newBench(t)
	keys := []someip.InstanceKey{climate, door}
	for _, k := range keys {
		spec := simpleOffer(k, 35699)
		spec.Eventgroups = []sd.Eventgroup{{ID: 1, UDP: true}}
		b.must(b.m.Offer(b.now, spec))
	}
	b.run(400 * time.Millisecond)
	b.trace = nil
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	h.toUs(sub(door, 1, 3, udp(clientUDP))).expect("to 10.0.0.3: Ack 2000.0007 v2 0001",
		"subscriber 10.0.0.3 2000.0007 v2 0001.0 udp:10.0.0.3:4000 initial=true")
	h.toUs(sub(climate, 1, 0, udp(clientUDP))).expect(subscriber1 + " removed: stopped")
}

// Case 22, RB-8: a peer that counts what it could not send leaves gaps, which are no
// restart and cost nothing.
func TestCase22SessionGaps(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	h.toAll(climateUp(30)).expect(up)
	for _, gap := range []uint16{1, 7, 1000, 30000} {
		b.run(100 * time.Millisecond)
		h.multicast += gap
		h.toAll(climateUp(30)).expect()
	}
	require.Zero(t, b.m.Stats().Reboots)
}

// CL-5: an offer is answered by nothing where nothing of it is
// wanted.
func TestUnwantedOfferIsNotAnswered(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	h.toAll(climateUp(3)).expect(up)
	h.toUs(climateUp(3)).expect()
	b.run(500 * time.Millisecond).expect()
}
