package sd_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

const (
	up    = "available 1234.0001 v1 udp:10.0.0.2:3000"
	gone  = "unavailable 1234.0001 v1: "
	finds = "to all: Find 1234.0001 v1"
)

func climateUp(ttl uint32) entry { return offer(climate, ttl, udp("10.0.0.2:3000")) }

// CL-1: Finds with initial wait and repetitions, then silence; none while there
// is an offer.
// PH-1 to PH-3, CL-5.
func TestFindPhases(t *testing.T) {
	b := newBench(t)
	b.did(b.m.Find(b.now, climate))
	b.did(b.m.Find(b.now, climate))
	b.run(time.Minute).expect("50ms "+finds, "150ms "+finds, "350ms "+finds)

	// They stop after an Offer. CL-4: also one by unicast.
	b = newBench(t)
	b.did(b.m.Find(b.now, climate)).run(60 * time.Millisecond).expect(finds)
	b.host(server).toUs(climateUp(3)).expect(up)
	b.run(time.Second).expect()

	b = newBench(t)
	b.host(server).toAll(climateUp(3)).expect(up) // offers are reported without a Find
	b.did(b.m.Find(b.now, climate))
	b.did(b.m.Find(b.now, someip.InstanceKey{Service: 0x1234, Instance: 0xFFFF, Major: 0xFF}))
	b.run(time.Second).expect()
}

// Finds that start together share a message, with offers too.
func TestFindsArePacked(t *testing.T) {
	b := newBench(t)
	b.did(b.m.Find(b.now, climate))
	b.did(b.m.Find(b.now, someip.InstanceKey{Service: 0x3000, Instance: 0xFFFF, Major: 0xFF}))
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000)))
	b.run(60 * time.Millisecond).expect("to all: Offer 2000.0007 v2 udp:10.0.0.1:3000; Find 1234.0001 v1; Find 3000.* v*")
}

// Case 61, CL-1, CL-3: after expiry Finds start again, after StopOffer they do not.
func TestCase61FindAfterExpiry(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	b.did(b.m.Find(b.now, climate))
	h.toAll(climateUp(3)).expect(up)
	b.run(3100*time.Millisecond).expect("1.1s rejoin", "2.2s rejoin", "3.05s "+gone+"expired", "3.1s "+finds)
	b.run(time.Minute).expect("3.2s "+finds, "3.4s "+finds)
	h.toAll(climateUp(3)).expect(up)
	h.toAll(offer(climate, 0)).expect(gone + "stopped")
	b.run(time.Minute).expect()
}

// A Find that stops is not repeated; a service of our own is not looked for
// (case 68) until we withdraw it.
func TestStopFindAndOwnServices(t *testing.T) {
	b := newBench(t)
	b.did(b.m.Find(b.now, climate)).run(60 * time.Millisecond).expect(finds)
	b.m.StopFind(climate)
	b.m.StopFind(climate)
	b.run(time.Minute).expect()

	b = offering(t, func(c *sd.Config) { c.CyclicOfferDelay = time.Hour })
	b.did(b.m.Find(b.now, climate)).run(time.Second).expect()
	b.did(b.m.StopOffer(b.now, climate)).expect("to all: StopOffer 1234.0001 v1" + climateEndpoints)
	b.run(60 * time.Millisecond).expect(finds)
}

// Case 59, CL-2: each Offer starts the lifetime anew, with a little slack.
func TestCase59OfferRefreshesTTL(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	h.toAll(climateUp(3)).expect(up)
	for range 5 {
		b.run(3 * time.Second)
		h.toAll(climateUp(3))
	}
	require.NotContains(t, b.trace, gone)
	require.Len(t, availableNow(b), 1)
	b.trace = nil
	h.toAll(climateUp(sd.TTLForever)).expect()
	b.run(time.Hour)
	require.Len(t, availableNow(b), 1)
}

func availableNow(b *bench) []sd.Available {
	var all []sd.Available
	for a := range b.m.Available() {
		all = append(all, a)
	}
	return all
}

// The TTL factor stretches what peers give.
func TestTTLFactor(t *testing.T) {
	b := newBench(t, func(c *sd.Config) { c.TTLFactor = 5 })
	b.host(server).toUs(climateUp(3)).expect(up)
	b.run(15 * time.Second).expect()
	b.run(ttlSlack).expect(gone + "expired")
}

// CL-2: an endpoint that changes is a stop and a new offer; minor and options
// are told.
func TestOfferChanges(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	h.toAll(climateUp(3)).expect(up)
	h.toAll(offer(climate, 3, udp("10.0.0.2:3100"))).expect(gone+"moved", "available 1234.0001 v1 udp:10.0.0.2:3100")
	h.toAll(offer(climate, 3, udp("10.0.0.2:3100"), tcp("10.0.0.2:3101"))).expect(
		gone+"moved", "available 1234.0001 v1 udp:10.0.0.2:3100 tcp:10.0.0.2:3101")
	e := offer(climate, 3, udp("10.0.0.2:3100"), tcp("10.0.0.2:3101"), config("a=b", "c"), config("d"), sd.LoadBalancingOption(1, 100))
	e.Minor = 9
	h.toAll(e)
	require.Equal(t, []sd.Action{sd.Available{
		Key: climate, Minor: 9, Peer: server, Endpoints: sd.Endpoints{UDP: ap("10.0.0.2:3100"), TCP: ap("10.0.0.2:3101")},
		Configuration: []string{"a=b", "c", "d"}, LoadBalancing: &sd.LoadBalancing{Priority: 1, Weight: 100},
	}}, b.acts)
	b.trace = nil
	h.toAll(e).expect()
}

// CL-2: implausible endpoints, contradictions, reserved ids.
func TestOfferIgnored(t *testing.T) {
	for _, tc := range []struct {
		name  string
		offer entry
		count func(sd.Stats) uint64
	}{
		{"no endpoint", offer(climate, 3), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"two UDP endpoints", offer(climate, 3, udp("10.0.0.2:1"), udp("10.0.0.2:2")), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"unknown protocol", offer(climate, 3, sd.EndpointOption(ap("10.0.0.2:1"), 0x84)), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"option index", changed(climateUp(3), func(e *entry) { e.Index2, e.Count2 = 1, 1 }), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"instance any", offer(someip.InstanceKey{Service: 1, Instance: 0xFFFF}, 3, udp("10.0.0.2:1")), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"port 0", offer(climate, 3, udp("10.0.0.2:0")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"multicast", offer(climate, 3, udp("224.1.1.1:1")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"unspecified", offer(climate, 3, udp("0.0.0.0:1")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"loopback", offer(climate, 3, udp("127.0.0.1:1")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"other subnet", offer(climate, 3, udp("10.0.1.2:1")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"our own address", offer(climate, 3, udp("10.0.0.1:1")), func(s sd.Stats) uint64 { return s.OwnEndpoint }},
		{"one bad of two", offer(climate, 3, udp("10.0.0.2:1"), tcp("10.0.1.2:1")), func(s sd.Stats) uint64 { return s.BadEndpoint }},
		{"other family only", offer(climate, 3, udp("[fd00::2]:1")), func(s sd.Stats) uint64 { return s.BadEntries }},
		{"case 46: unknown entry", changed(climateUp(3), func(e *entry) { e.Type = 0x0A }), func(s sd.Stats) uint64 { return s.UnknownEntries }},
		{"StopOffer of what is unknown", offer(climate, 0), func(s sd.Stats) uint64 { return s.UnknownStops }},
	} {
		b := newBench(t)
		// The rest of the message is processed (9.5).
		b.host(server).toAll(tc.offer, offer(door, 3, udp("10.0.0.2:1")))
		if tc.name == "our own address" { // that is told
			b.trace = b.trace[1:]
		}
		b.expect("available 2000.0007 v2 udp:10.0.0.2:1")
		require.EqualValues(t, 1, tc.count(b.m.Stats()), tc.name)
	}
}

// Loopback endpoints are plausible where the network is on loopback.
func TestLoopbackNetwork(t *testing.T) {
	b := newBench(t, func(c *sd.Config) {
		c.Address = ap("127.0.1.1:1").Addr()
		c.Subnet = netip.MustParsePrefix("127.0.1.0/24")
	})
	b.host(ap("127.0.1.2:30490")).toAll(offer(climate, 3, udp("127.0.1.2:3000"))).
		expect("available 1234.0001 v1 udp:127.0.1.2:3000")
}

// An IPv6 offer on an IPv6 network, from a link-local peer with and without zone
// (case 20).
// NET-3.
func TestCase20Zones(t *testing.T) {
	b := newBench(t, func(c *sd.Config) {
		c.Address = netip.MustParseAddr("fe80::1%eth0")
		c.Group = netip.MustParseAddr("ff14::5")
		c.Subnet = netip.Prefix{}
	})
	spec := sd.OfferSpec{Key: door, Endpoints: sd.Endpoints{UDP: ap("[fe80::1]:3000")}}
	acts, err := b.m.Offer(b.now, spec)
	require.NoError(t, err)
	require.Empty(t, acts)
	b.now = b.now.Add(50 * time.Millisecond)
	b.m.Tick(b.now)

	zoned, bare := ap("[fe80::2%eth0]:30490"), ap("[fe80::2]:30490")
	h := b.host(zoned)
	h.toAll(offer(climate, 3, udp("[fe80::2]:3000"))).expect("available 1234.0001 v1 udp:[fe80::2]:3000")
	// The same peer without a zone is the same peer: session 1 again is a restart.
	acts = b.m.Receive(b.now.Add(time.Second), bare, true, encode(t, 1, h.flags, find(door)))
	require.Equal(t, sd.PeerRebooted{Peer: bare}, acts[0])
	// What is sent to it has the zone of the network.
	acts = b.m.Receive(b.now.Add(time.Second), bare, false, encode(t, 1, h.flags, find(door)))
	require.Len(t, acts, 1)
	require.Equal(t, zoned, acts[0].(sd.Send).To)
}

// Case 76: what we offer is ours; the conflict is told once per peer.
func TestCase76OfferOfOurOwn(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.CyclicOfferDelay = time.Hour })
	h := b.host(server)
	const conflict = "conflict 1234.0001 v1 local=true with 10.0.0.2"
	h.toAll(climateUp(3)).expect(conflict)
	h.toAll(climateUp(3)).expect()
	require.EqualValues(t, 2, b.m.Stats().Conflicts)
	require.Empty(t, availableNow(b))

	b = newBench(t)
	b.host(server).toAll(climateUp(3)).expect(up)
	b.must(b.m.Offer(b.now, climateOffer())).expect(conflict, gone+"withdrawn")
}

// Two peers that offer the same instance at different places do not make the
// route change with each offer; when one falls silent the other is followed.
func TestTwoPeersOfferTheSame(t *testing.T) {
	b := newBench(t)
	first, second := b.host(server), b.host(client)
	other := offer(climate, 30, udp("10.0.0.3:3000"))
	first.toAll(climateUp(30)).expect(up)
	second.toAll(other).expect("conflict 1234.0001 v1 local=false with 10.0.0.3")
	for range 3 {
		b.run(time.Second)
		first.toAll(climateUp(30))
		b.run(100 * time.Millisecond)
		second.toAll(other)
	}
	b.expect()
	second.toAll(offer(climate, 0)).expect() // not its to stop
	b.run(time.Second)
	second.toAll(other).expect()
	b.run(time.Second)
	second.toAll(other).expect(gone+"moved", "available 1234.0001 v1 udp:10.0.0.3:3000")
}

// One server that is seen at two addresses is one offer; it stays when the first
// address falls silent.
func TestPeerAtTwoAddresses(t *testing.T) {
	b := newBench(t)
	first, second := b.host(server), b.host(client)
	first.toAll(climateUp(3)).expect(up)
	for range 10 {
		b.run(time.Second)
		second.toAll(climateUp(3)).expect()
	}
	require.Equal(t, client, availableNow(b)[0].Peer)
	// The first restarts: nothing of its is left to drop.
	first.restart()
	first.toAll(climateUp(3)).expect("rebooted 10.0.0.2")
}

// Limits on offers.
func TestOfferLimits(t *testing.T) {
	b := newBench(t, func(c *sd.Config) { c.Limits.OffersPerPeer, c.Limits.Offers = 2, 3 })
	add := func(h *host, service uint16) {
		h.toAll(offer(someip.InstanceKey{Service: service, Instance: 1}, 3, udp("10.0.0.2:1")))
	}
	first, second := b.host(server), b.host(client)
	for i := range uint16(4) {
		add(first, 0x100+i)
	}
	require.Len(t, availableNow(b), 2)
	for i := range uint16(4) {
		add(second, 0x200+i)
	}
	require.Len(t, availableNow(b), 3)
	require.EqualValues(t, 5, b.m.Stats().OfferLimit)
}

// Case 70: when peers are not heard any more the group is joined again; state
// stays until it expires. What has a long cycle does not alarm for ever.
// NET-2.
func TestCase70Silence(t *testing.T) {
	b := newBench(t)
	h := b.host(server)
	h.toAll(climateUp(60)).expect(up)
	b.run(2500*time.Millisecond).expect("1.1s rejoin", "2.2s rejoin")
	h.toAll(climateUp(60)) // a cycle of 2.5 s
	for range 5 {
		b.run(2500 * time.Millisecond).expect()
		h.toAll(climateUp(60))
	}
	h.toAll(offer(climate, 0)).expect(gone + "stopped")
	b.run(time.Hour).expect()
}

// 9.6: a link that comes back starts everything anew, with the sessions kept.
// NET-1.
func TestLinkDownAndUp(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	b.host(server).toAll(offer(door, 3, udp("10.0.0.2:1"))).expect("available 2000.0007 v2 udp:10.0.0.2:1")
	b.did(b.m.Find(b.now, door))

	b.did(b.m.LinkDown(b.now)).expect("unavailable 2000.0007 v2: link down")
	b.did(b.m.LinkDown(b.now)).expect()
	h.toUs(find(climate)).expect()
	b.run(4 * time.Second).expect(subscriber1 + " removed: expired") // SUB-12

	b.did(b.m.LinkUp(b.now)).expect()
	b.did(b.m.LinkUp(b.now)).expect()
	b.run(60 * time.Millisecond)
	sends := b.sends()
	require.Len(t, sends, 1)
	require.EqualValues(t, 4, sends[0].Session)
	require.Len(t, sends[0].Entries, 2)
}

// Shutdown says goodbye to everybody in as few messages as can be.
func TestShutdown(t *testing.T) {
	b := offering(t)
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000))).run(60 * time.Millisecond)
	k := someip.InstanceKey{Service: 0x3000, Instance: 1, Major: 1}
	b.host(server).toAll(offer(k, 3, udp("10.0.0.2:1")))
	for eventgroup := range uint16(2) {
		b.must(b.m.Subscribe(b.now, sd.Subscription{Key: sd.SubscriptionKey{Instance: k, Eventgroup: 1 + eventgroup}, UDP: ap("10.0.0.1:4000")}))
	}
	b.did(b.m.Find(b.now, climate))
	b.trace = nil
	b.did(b.m.Shutdown(b.now)).expect(
		"to all: StopOffer 1234.0001 v1"+climateEndpoints+"; StopOffer 2000.0007 v2 udp:10.0.0.1:3000",
		"to 10.0.0.2: StopSubscribe 3000.0001 v1 0001 udp:10.0.0.1:4000; StopSubscribe 3000.0001 v1 0002 udp:10.0.0.1:4000")
	require.Empty(t, b.m.Shutdown(b.now))
}
