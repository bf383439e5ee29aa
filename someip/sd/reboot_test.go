package sd_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/sd"
)

// seen is one message of a peer: path, reboot flag, session.
type seen struct {
	multicast bool
	flag      bool
	session   uint16
}

// RB-4 to RB-6: which messages show a restart.
func TestRebootDetection(t *testing.T) {
	const mc, uc, set, clear = true, false, true, false
	for _, tc := range []struct {
		name     string
		messages []seen
		reboots  int // the last message shows the last of them
	}{
		{"first message", []seen{{mc, set, 1}}, 0},
		{"sessions go on", []seen{{mc, set, 1}, {mc, set, 2}, {mc, set, 3}}, 0},
		{"messages lost (RB-8)", []seen{{mc, set, 1}, {mc, set, 900}}, 0},
		{"restart", []seen{{mc, set, 5}, {mc, set, 1}}, 1},
		{"the same session again", []seen{{mc, set, 5}, {mc, set, 5}}, 1},
		{"counter wraps", []seen{{mc, set, 0xFFFF}, {mc, clear, 1}, {mc, clear, 2}}, 0},
		{"wraps for the second time", []seen{{mc, clear, 0xFFFF}, {mc, clear, 1}}, 0},
		{"restart after a wrap", []seen{{mc, clear, 3}, {mc, set, 9}}, 1},
		{"RB-6: one restart on both paths", []seen{{mc, set, 9}, {uc, set, 9}, {mc, set, 1}, {uc, set, 1}}, 1},
		{"RB-6: unicast first", []seen{{mc, set, 9}, {uc, set, 9}, {uc, set, 1}, {mc, set, 1}}, 1},
		{"two restarts on both paths", []seen{{mc, set, 9}, {uc, set, 9}, {mc, set, 1}, {uc, set, 1}, {mc, set, 1}, {uc, set, 1}}, 2},
		{"the other path goes on, then restarts", []seen{{mc, set, 9}, {uc, set, 9}, {mc, set, 1}, {uc, set, 10}, {uc, set, 1}}, 2},
		{"no sessions at all", []seen{{mc, set, 0}, {mc, set, 0}, {mc, set, 0}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t)
			for i, s := range tc.messages {
				flags := sd.FlagUnicast
				if s.flag {
					flags |= sd.FlagReboot
				}
				b.run(time.Second)
				b.did(b.m.Receive(b.now, server, s.multicast, encode(t, s.session, flags, find(door))))
				if i == len(tc.messages)-2 {
					require.LessOrEqual(t, int(b.m.Stats().Reboots), tc.reboots)
				}
			}
			require.EqualValues(t, tc.reboots, b.m.Stats().Reboots)
			require.Len(t, b.trace, tc.reboots)
		})
	}
}

// RB-6: after a restart the Offer comes first and the Ack, on the other path,
// second: what the first set up stays.
func TestOneRestartIsOneEvent(t *testing.T) {
	b, h := subscribed(t)
	b.run(time.Second)
	h.toAll(climateUp(30)).expect(subscribe1)
	h.toUs(ack(climate, 1, 5)).expect()
	b.run(time.Second)
	h.restart()
	h.toAll(climateUp(30)).expect("rebooted 10.0.0.2", lost1+"peer restarted", gone+"peer restarted", up, subscribe1)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	require.EqualValues(t, 1, b.m.Stats().Reboots)
}

// RB-6, RB-7: a server restarts so fast that its first Offer counts as a copy of the
// last one. Its Ack shows the restart, and what it sent with the Ack is lost on us: the
// next Subscribe asks for the initial events again.
func TestRestartShownByAck(t *testing.T) {
	b, h := subscribed(t)
	b.run(time.Second)
	h.toUs(ack(climate, 1, 5)).expect()
	h.toAll(climateUp(30)).expect(subscribe1)
	h.restart()
	h.toUs(ack(climate, 1, 5)).expect("rebooted 10.0.0.2", lost1+"peer restarted", gone+"peer restarted")
	h.toAll(climateUp(30)).expect(up, pair1)
}

// RB-6: a restarted client has no subscriptions any more, its new one is new.
func TestClientRestart(t *testing.T) {
	b := offering(t, func(c *sd.Config) { c.CyclicOfferDelay = time.Hour })
	h := b.host(client)
	h.toUs(sub(climate, 1, 60, udp(clientUDP))).expect(ack1, subscriber1+" initial=true")
	h.toAll(find(climate))
	b.run(time.Second)
	b.trace = nil
	h.restart()
	h.toUs(sub(climate, 1, 60, udp(clientUDP))).expect("rebooted 10.0.0.3",
		subscriber1+" removed: peer restarted", ack1, subscriber1+" initial=true")
	// Our own sessions towards it go on.
	h.toUs(find(climate))
	require.EqualValues(t, 4, b.sends()[0].Session)
}

// RB-7: an identical copy within 50 ms is a duplicate of the network; later, or
// with another byte, it is a restart.
func TestDuplicates(t *testing.T) {
	b := newBench(t)
	first := encode(t, 1, sd.FlagReboot|sd.FlagUnicast, climateUp(30))
	second := encode(t, 2, sd.FlagReboot|sd.FlagUnicast, climateUp(30))
	receive := func(data []byte) { b.did(b.m.Receive(b.now, server, true, data)) }
	receive(first)
	b.expect(up)
	receive(first)
	receive(second)
	receive(first)
	receive(second)
	b.expect()
	require.EqualValues(t, 3, b.m.Stats().Duplicates)
	b.run(50 * time.Millisecond)
	receive(second)
	b.expect("rebooted 10.0.0.2", gone+"peer restarted", up)

	strict := newBench(t, func(c *sd.Config) { c.DuplicateWindow = 0 })
	strict.did(strict.m.Receive(strict.now, server, true, first))
	strict.did(strict.m.Receive(strict.now, server, true, first))
	require.EqualValues(t, 1, strict.m.Stats().Reboots)
}

// RB-3: an SD endpoint option replaces the source as identity and as where
// answers go, if it can be.
// FMT-11.
func TestSDEndpointOption(t *testing.T) {
	b := offering(t)
	message := func(at string, session uint16) []byte {
		m := sd.Message{
			Session: session, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{find(climate).Entry}, Options: []sd.Option{sd.SDEndpointOption(ap(at))},
		}
		data, err := m.Append(nil)
		require.NoError(t, err)
		return data
	}
	b.did(b.m.Receive(b.now, server, false, message("10.0.0.3:30490", 5))).expect(answer)
	b.host(server).toUs(find(door)).expect() // another peer: session 1 is no restart
	b.did(b.m.Receive(b.now, server, false, message("10.0.0.1:30490", 2))).
		expect("to 10.0.0.2: Offer 1234.0001 v1" + climateEndpoints)
	b.did(b.m.Receive(b.now, server, false, message("10.9.0.3:30490", 3))).
		expect("to 10.0.0.2: Offer 1234.0001 v1" + climateEndpoints)
}

// Case 73, own-address filter, foreign subnets.
// FMT-1.
func TestCase73SourceFilter(t *testing.T) {
	for _, tc := range []struct {
		from   string
		change func(*sd.Config)
		count  func(sd.Stats) uint64
	}{
		{"10.0.0.1:30490", nil, func(s sd.Stats) uint64 { return s.Own }},
		{"[::ffff:10.0.0.1]:30490", nil, func(s sd.Stats) uint64 { return s.Own }},
		{"10.0.0.1:999", nil, func(s sd.Stats) uint64 { return s.Own }},
		{"10.0.0.1:999", func(c *sd.Config) { c.AnySourcePort, c.AllowOwnAddress = true, true }, func(s sd.Stats) uint64 { return s.Received }},
		{"10.0.0.2:999", nil, func(s sd.Stats) uint64 { return s.SourcePort }},
		{"10.0.0.2:999", func(c *sd.Config) { c.AnySourcePort = true }, func(s sd.Stats) uint64 { return s.Received }},
		{"10.0.1.2:30490", nil, func(s sd.Stats) uint64 { return s.SourceAddress }},
		{"10.0.1.2:30490", func(c *sd.Config) { c.Subnet = netip.Prefix{} }, func(s sd.Stats) uint64 { return s.Received }},
	} {
		var change []func(*sd.Config)
		if tc.change != nil {
			change = append(change, tc.change)
		}
		b := newBench(t, change...)
		b.did(b.m.Receive(b.now, ap(tc.from), true, encode(t, 1, sd.FlagUnicast, find(climate))))
		require.EqualValues(t, 1, tc.count(b.m.Stats()), tc.from)
	}
}

// Malformed datagrams are counted and not answered; several messages in one are
// all handled.
// VAL-1, VAL-2.
func TestMalformedAndSeveral(t *testing.T) {
	b := offering(t)
	for i, tc := range golden {
		for n := 1; n < len(tc.bytes); n++ {
			b.did(b.m.Receive(b.now, server, false, tc.bytes[:n])).expect()
		}
		require.NotZero(t, i+1)
	}
	require.Zero(t, b.m.Stats().Received)
	require.NotZero(t, b.m.Stats().Malformed)

	two := append(encode(t, 1, sd.FlagUnicast, find(climate)), encode(t, 2, sd.FlagUnicast, find(door))...)
	b.did(b.m.Receive(b.now, client, false, append(two, 0xA5))).expect(answer)
	require.EqualValues(t, 2, b.m.Stats().Received)

	// An option that cannot be parsed makes the Subscribe that needs it invalid,
	// not the Find beside it (9.5).
	data := encode(t, 3, sd.FlagUnicast, sub(climate, 1, 3, sd.LoadBalancingOption(1, 1)), find(climate))
	data[16+12+2*16+1] = 4
	b.did(b.m.Receive(b.now, client, false, data)).expect(nack1 + "; Offer 1234.0001 v1" + climateEndpoints)
	require.EqualValues(t, 1, b.m.Stats().BadOptions)
}

// The number of peers is bounded: who has something at stake stays, and who
// comes back is not shown a restart of ours.
func TestPeerLimit(t *testing.T) {
	b := offering(t, func(c *sd.Config) {
		c.Limits.Peers = 3
		c.CyclicOfferDelay = time.Hour
	})
	b.host(server).toAll(offer(door, sd.TTLForever, udp("10.0.0.2:1")))
	asker := b.host(client)
	for range 5 {
		asker.toUs(find(climate))
	}
	b.run(time.Second)
	require.EqualValues(t, 5, b.sends()[4].Session)
	for i := range 50 {
		b.run(time.Second)
		b.host(ap(fmt.Sprintf("10.0.0.%d:30490", 100+i))).toAll(find(door))
	}
	b.trace, b.acts = nil, nil
	require.Len(t, availableNow(b), 1)
	asker.toUs(find(climate)) // never dropped: it had been written to
	require.EqualValues(t, 6, b.sends()[0].Session)

	// When all that were not written to are gone, others go, too.
	for i := range 50 {
		b.run(time.Second)
		b.host(ap(fmt.Sprintf("10.0.0.%d:30490", 100+i))).toUs(find(climate))
	}
	b.trace, b.acts = nil, nil
	asker.restart()
	asker.toUs(find(climate))
	require.Greater(t, b.sends()[0].Session, uint16(6))

	full := offering(t, func(c *sd.Config) { c.Limits.Peers = 1 })
	full.host(server).toAll(offer(door, 3, udp("10.0.0.2:1")))
	full.host(client).toUs(find(climate))
	require.EqualValues(t, 1, full.m.Stats().PeerLimit)
}
