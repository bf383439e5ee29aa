package sd_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

const (
	clientUDP   = "10.0.0.3:4000"
	clientTCP   = "10.0.0.3:4001"
	ack1        = "to 10.0.0.3: Ack 1234.0001 v1 0001"
	nack1       = "to 10.0.0.3: Nack 1234.0001 v1 0001"
	subscriber1 = "subscriber 10.0.0.3 1234.0001 v1 0001.0 udp:10.0.0.3:4000"
)

// SUB-4, SUB-7: the Ack first, then initial events, once per new subscription. A
// renewal is acknowledged and gives none.
func TestSubscribe(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	b.run(500 * time.Millisecond)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
}

// Case 83, SUB-5: StopSubscribe and Subscribe in one message renew the
// subscription with initial events, with one Ack.
func TestCase83StopAndSubscribe(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	h.toUs(sub(climate, 1, 0, udp(clientUDP)), sub(climate, 1, 3, udp(clientUDP))).
		expect(ack1, subscriber1+" removed: stopped", subscriber1+" initial=true")
	// In the other order the subscription ends.
	h.toUs(sub(climate, 1, 3, udp(clientUDP)), sub(climate, 1, 0, udp(clientUDP))).
		expect(ack1, subscriber1+" removed: stopped")
	// A pair of a client that the server does not know gives one Ack too.
	h.toUs(sub(climate, 1, 0, udp(clientUDP)), sub(climate, 1, 3, udp(clientUDP))).
		expect(ack1, subscriber1+" initial=true")
}

// SUB-4: an Ack echoes the Subscribe; SV-6a: all of one message in one.
func TestAckEchoes(t *testing.T) {
	b := offering(t)
	first := changed(sub(climate, 1, 77, udp(clientUDP)), func(e *entry) {
		e.Counter, e.InitialData, e.Reserved = 5, true, 0x1230
	})
	b.host(client).toUs(first, sub(climate, 3, 9, udp(clientUDP)), sub(door, 1, 4, udp(clientUDP)))
	sends := b.sends()
	require.Len(t, sends, 1)
	got := sends[0].Entries
	require.Len(t, got, 3)
	want := first.Entry
	want.Type = sd.SubscribeAck
	require.Equal(t, want, got[0])
	require.EqualValues(t, 9, got[1].TTL)
	require.EqualValues(t, 1, got[1].Count1)
	require.EqualValues(t, 0, got[2].TTL, "Nack")
	require.Equal(t, []sd.Option{sd.MulticastOption(ap("224.225.226.233:32344"))}, sends[0].Options)
}

// Case 49: the multicast option is the group of the eventgroup.
// MC-3.
func TestCase49AckMulticast(t *testing.T) {
	b := offering(t)
	b.host(client).toUs(sub(climate, 3, 3, udp(clientUDP))).expect(
		"to 10.0.0.3: Ack 1234.0001 v1 0003 group:224.225.226.233:32344",
		"subscriber 10.0.0.3 1234.0001 v1 0003.0 udp:10.0.0.3:4000 initial=true")
	// An eventgroup that is multicast takes a subscriber without endpoint.
	b.host(server).toUs(sub(climate, 3, 3)).expect(
		"to 10.0.0.2: Ack 1234.0001 v1 0003 group:224.225.226.233:32344",
		"subscriber 10.0.0.2 1234.0001 v1 0003.0 initial=true")
}

// SUB-9: what is refused, and that a refusal leaves nothing behind.
// FMT-12, EVT-3.
func TestSubscribeValidation(t *testing.T) {
	other := func(change func(k *someip.InstanceKey)) someip.InstanceKey {
		k := climate
		change(&k)
		return k
	}
	for _, tc := range []struct {
		name string
		sub  entry
		ok   bool
	}{
		{"unknown option", sub(climate, 1, 3, udp(clientUDP), sd.Option{Type: 0x77, Data: make([]byte, 4)}), true},
		{"configuration and load balancing", sub(climate, 1, 3, config("a=b"), udp(clientUDP), sd.LoadBalancingOption(1, 1)), true},
		{"UDP and TCP where UDP is used", sub(climate, 1, 3, udp(clientUDP), tcp(clientTCP)), true},
		{"the same endpoint twice", sub(climate, 1, 3, udp(clientUDP), udp(clientUDP)), true},
		{"client multicast", sub(climate, 1, 3, udp(clientUDP), sd.MulticastOption(ap("224.1.1.1:5"))), true},
		{"endpoint of the other family is ignored", sub(climate, 1, 3, udp(clientUDP), udp("[fd00::3]:1")), true},
		{"two UDP endpoints", sub(climate, 1, 3, udp(clientUDP), udp("10.0.0.3:4002")), false},
		{"unknown eventgroup", sub(climate, 0x9999, 3, udp(clientUDP)), false},
		{"wrong major", sub(other(func(k *someip.InstanceKey) { k.Major = 9 }), 1, 3, udp(clientUDP)), false},
		{"unknown instance", sub(other(func(k *someip.InstanceKey) { k.Instance = 9 }), 1, 3, udp(clientUDP)), false},
		{"unknown service", sub(door, 1, 3, udp(clientUDP)), false},
		{"no endpoint", sub(climate, 1, 3), false},
		{"only TCP where UDP is used", sub(climate, 1, 3, tcp(clientTCP)), false},
		{"only UDP where both are used", sub(climate, 4, 3, udp(clientUDP)), false},
		{"unsupported protocol", sub(climate, 1, 3, sd.EndpointOption(ap(clientUDP), 0x84)), false},
		{"port 0", sub(climate, 1, 3, udp("10.0.0.3:0")), false},
		{"no address", sub(climate, 1, 3, udp("0.0.0.0:4000")), false},
		{"multicast address", sub(climate, 1, 3, udp("224.0.0.5:4000")), false},
		{"loopback", sub(climate, 1, 3, udp("127.0.0.1:4000")), false},
		{"our own address", sub(climate, 1, 3, udp("10.0.0.1:4000")), false},
		{"other subnet", sub(climate, 1, 3, udp("10.0.1.3:4000")), false},
		{"broadcast", sub(climate, 1, 3, udp("255.255.255.255:4000")), false},
		{"option index out of range", changed(sub(climate, 1, 3, udp(clientUDP)), func(e *entry) { e.Index2, e.Count2 = 9, 1 }), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := offering(t)
			b.host(client).toUs(tc.sub)
			if tc.ok {
				require.Len(t, b.trace, 2)
				require.Contains(t, b.trace[0], "Ack")
				require.Contains(t, b.trace[1], "initial=true")
				return
			}
			require.Contains(t, b.trace[len(b.trace)-1], "Nack")
			require.Equal(t, tc.name == "our own address", len(b.trace) > 1, "that is told")
			b.trace = nil
			b.did(b.m.StopOffer(b.now, climate)) // no subscriber to remove
			require.Len(t, b.trace, 1)
		})
	}
}

// Case 77: the subnet check can be off; it is of this machine alone.
func TestCase77SubnetCheckOff(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.Subnet = netip.Prefix{} })
	b.host(ap("10.10.1.101:30490")).toUs(sub(climate, 1, 3, udp("10.10.1.101:4000")))
	require.Len(t, b.trace, 2)
	strict := offering(t)
	strict.host(ap("10.10.1.101:30490")).toUs(sub(climate, 1, 3, udp("10.10.1.101:4000"))).expect()
	require.EqualValues(t, 1, strict.m.Stats().SourceAddress)
}

// Case 86, SUB-1: eventgroup entries by multicast are ignored.
func TestCase86SubscribeByMulticast(t *testing.T) {
	b := offering(t)
	b.host(client).toAll(sub(climate, 1, 3, udp(clientUDP)), ack(climate, 1, 3)).expect()
	require.EqualValues(t, 2, b.m.Stats().MulticastEvents)
}

// Case 97, SUB-12: subscriptions expire; those with TTL 0xffffff do not.
func TestCase97Expiry(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.CyclicOfferDelay = time.Hour })
	h := b.host(client)
	forever := b.host(server)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	forever.toUs(sub(climate, 1, sd.TTLForever, udp("10.0.0.2:4000")))
	b.trace = nil
	b.run(2 * time.Second)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
	b.run(3 * time.Second).expect()
	b.run(ttlSlack).expect(subscriber1 + " removed: expired")
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	b.run(50 * time.Minute).expect(subscriber1 + " removed: expired")
}

const ttlSlack = 50 * time.Millisecond

// SUB-10: StopSubscribe has no answer, known or not.
func TestStopSubscribe(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 0, udp(clientUDP)), sub(door, 1, 0)).expect()
	require.EqualValues(t, 2, b.m.Stats().UnknownStops)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	h.toUs(sub(climate, 1, 0)).expect(subscriber1 + " removed: stopped")
}

// SV-7: only subscribers of what is withdrawn go.
func TestStopOfferForgetsSubscribers(t *testing.T) {
	b := offering(t)
	spec := simpleOffer(door, 3000)
	spec.Eventgroups = []sd.Eventgroup{{ID: 1, UDP: true}}
	b.must(b.m.Offer(b.now, spec))
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP)), sub(door, 1, 3, udp(clientUDP)))
	b.trace = nil
	b.run(60 * time.Millisecond).expect("to all: Offer 2000.0007 v2 udp:10.0.0.1:3000")
	b.did(b.m.StopOffer(b.now, climate)).expect(
		"to all: StopOffer 1234.0001 v1"+climateEndpoints, subscriber1+" removed: withdrawn")
	h.toUs(sub(door, 1, 0)).expect("subscriber 10.0.0.3 2000.0007 v2 0001.0 udp:10.0.0.3:4000 removed: stopped")
}

// A client that comes back with another endpoint is a new subscriber.
func TestSubscribeFromOtherEndpoint(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	h.toUs(sub(climate, 1, 3, udp("10.0.0.3:4100"))).expect(ack1, subscriber1+" removed: moved",
		"subscriber 10.0.0.3 1234.0001 v1 0001.0 udp:10.0.0.3:4100 initial=true")
}

// SUB-8: the counter tells parallel subscriptions apart.
func TestSubscribeCounter(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	count := func(n uint8) func(*entry) { return func(e *entry) { e.Counter = n } }
	h.toUs(sub(climate, 1, 3, udp(clientUDP)),
		changed(sub(climate, 1, 3, udp("10.0.0.3:4100")), count(1))).expect(
		ack1+"; Ack 1234.0001 v1 0001", subscriber1+" initial=true",
		"subscriber 10.0.0.3 1234.0001 v1 0001.1 udp:10.0.0.3:4100 initial=true")
	h.toUs(sub(climate, 1, 0)).expect(subscriber1 + " removed: stopped")
	h.toUs(changed(sub(climate, 1, 0), count(1))).expect(
		"subscriber 10.0.0.3 1234.0001 v1 0001.1 udp:10.0.0.3:4100 removed: stopped")
}

// SUB-3, SUB-9: a TCP subscription needs its connection. Discovery may be a
// little faster than the connection.
func TestSubscribeTCP(t *testing.T) {
	const (
		ackTCP  = "to 10.0.0.3: Ack 1234.0001 v1 0002"
		nackTCP = "to 10.0.0.3: Nack 1234.0001 v1 0002"
		added   = "subscriber 10.0.0.3 1234.0001 v1 0002.0 tcp:10.0.0.3:4001"
	)
	b := offering(t)
	h := b.host(client)
	local, remote := ap("10.0.0.1:3001"), ap(clientTCP)

	h.toUs(sub(climate, 2, 3, tcp(clientTCP))).expect()
	b.run(100 * time.Millisecond).expect(nackTCP)

	h.toUs(sub(climate, 2, 3, tcp(clientTCP))).expect()
	b.run(10 * time.Millisecond)
	b.did(b.m.Accepted(b.now, ap("10.0.0.1:9999"), remote)).expect() // another port of ours
	b.did(b.m.Accepted(b.now, local, remote)).expect(ackTCP, added+" initial=true")
	h.toUs(sub(climate, 2, 3, tcp(clientTCP))).expect(ackTCP)
	b.did(b.m.Closed(b.now, local, remote)).expect(added + " removed: disconnected")
	b.did(b.m.Closed(b.now, local, remote)).expect()

	b.did(b.m.Accepted(b.now, local, remote)).expect()
	h.toUs(sub(climate, 2, 3, tcp(clientTCP))).expect(ackTCP, added+" initial=true")

	// Stopped while it waited: nothing ever comes of it.
	h.toUs(sub(climate, 2, 0), sub(climate, 4, 3, udp(clientUDP), tcp("10.0.0.3:4005"))).expect(added + " removed: stopped")
	h.toUs(sub(climate, 4, 0)).expect()
	b.run(500 * time.Millisecond).expect()

	strict := offering(t, func(c *sd.Config) { c.ConnectGrace = 0 })
	strict.host(client).toUs(sub(climate, 2, 3, tcp(clientTCP))).expect(nackTCP)
}

// SUB-7: with explicit initial data control on both ends the flag decides alone.
// EVT-1.
func TestExplicitInitialData(t *testing.T) {
	const added = subscriber1 + " initial="
	initial := func(e *entry) { e.InitialData = true }
	b := offering(t, func(c *sd.Config) { c.InitialDataControl = true })
	h := b.host(client)
	h.flags |= sd.FlagInitialData
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1, added+"false")
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
	h.toUs(changed(sub(climate, 1, 3, udp(clientUDP)), initial)).expect(ack1+" initial", added+"true")
	// A peer without it gets them as ever.
	b.host(server).toUs(sub(climate, 1, 3, udp("10.0.0.2:1"))).expect("to 10.0.0.2: Ack 1234.0001 v1 0001",
		"subscriber 10.0.0.2 1234.0001 v1 0001.0 udp:10.0.0.2:1 initial=true")
}

// Limits: subscriptions of one peer to one eventgroup, of one peer, of all; and
// Nacks in a second.
func TestSubscriptionLimits(t *testing.T) {
	b := offering(t, func(c *sd.Config) {
		c.Limits.SubscribersPerGroup, c.Limits.SubscribersPerPeer, c.Limits.Subscribers = 2, 3, 4
		c.Limits.NacksPerSecond = 3
	})
	h := b.host(client)
	try := func(h *host, eventgroup uint16, counter uint8) string {
		h.toUs(changed(sub(climate, eventgroup, 60, udp(fmt.Sprintf("%v:4000", h.at.Addr()))), func(e *entry) { e.Counter = counter }))
		defer func() { b.trace = nil }()
		if len(b.trace) == 0 {
			return "silence"
		}
		return b.trace[0][len("400ms to 10.0.0.3: "):][:4]
	}
	require.Equal(t, "Ack ", try(h, 1, 0))
	require.Equal(t, "Ack ", try(h, 1, 1))
	require.Equal(t, "Nack", try(h, 1, 2)) // per eventgroup
	require.Equal(t, "Ack ", try(h, 3, 0))
	require.Equal(t, "Nack", try(h, 3, 1)) // per peer
	other := b.host(server)
	require.Equal(t, "Ack ", try(other, 1, 0))
	require.Equal(t, "Nack", try(other, 3, 0)) // in all
	require.Equal(t, "Ack ", try(h, 1, 1))     // renewals need no room
	require.Equal(t, "Nack", try(h, 9, 1))
	require.Equal(t, "silence", try(h, 9, 1))
	require.EqualValues(t, 1, b.m.Stats().NacksSuppressed)
	require.EqualValues(t, 4, b.m.Stats().NacksSent)
	b.now = b.now.Add(time.Second)
	h.toUs(sub(climate, 9, 3)).expect("to 10.0.0.3: Nack 1234.0001 v1 0009")
}

// Connections that peers open are remembered up to a limit.
func TestConnectionLimit(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.Limits.AcceptedTCPConnections = 1 })
	local := ap("10.0.0.1:3001")
	b.did(b.m.Accepted(b.now, local, ap("10.0.0.3:1")))
	b.did(b.m.Accepted(b.now, local, ap("10.0.0.3:2")))
	require.EqualValues(t, 1, b.m.Stats().ConnectionLimit)
	h := b.host(client)
	h.toUs(sub(climate, 2, 3, tcp("10.0.0.3:1"))).expect("to 10.0.0.3: Ack 1234.0001 v1 0002",
		"subscriber 10.0.0.3 1234.0001 v1 0002.0 tcp:10.0.0.3:1 initial=true")
	h.toUs(changed(sub(climate, 2, 3, tcp("10.0.0.3:2")), func(e *entry) { e.Counter = 1 })).run(100 * time.Millisecond).
		expect("to 10.0.0.3: Nack 1234.0001 v1 0002")
}
