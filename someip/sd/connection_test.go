package sd_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/sd"
)

const (
	connect      = "connect 10.0.0.2:3001 refused="
	subscribeTCP = "to 10.0.0.2: Subscribe 1234.0001 v1 0001 tcp:"
	pairTCP      = "to 10.0.0.2: StopSubscribe 1234.0001 v1 0001 tcp:"
	localTCP     = "10.0.0.1:5000"
)

var serverTCP = ap("10.0.0.2:3001")

func reliable(eventgroup uint16) sd.Subscription {
	s := wanted(eventgroup)
	s.UDP, s.TCP = netip.AddrPort{}, true
	return s
}

func reliableOffer() entry { return offer(climate, 30, tcp("10.0.0.2:3001")) }

// connecting is a bench that was asked to connect.
func connecting(t *testing.T) (*bench, *host) {
	t.Helper()
	b := newBench(t)
	h := b.host(server)
	b.must(b.m.Subscribe(b.now, reliable(1))).expect()
	h.toAll(reliableOffer()).expect("available 1234.0001 v1 tcp:10.0.0.2:3001", connect+"false")
	return b, h
}

// SUB-3: connect first, then name the local end of that connection.
func TestConnectBeforeSubscribe(t *testing.T) {
	b, h := connecting(t)
	h.toAll(reliableOffer()).expect() // once is enough
	b.must(b.m.Subscribe(b.now, reliable(2))).expect()
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(
		subscribeTCP + localTCP + "; Subscribe 1234.0001 v1 0002 tcp:" + localTCP)
	h.toUs(ack(climate, 1, 5), ack(climate, 2, 5)).expect(acked1, "acked 1234.0001 v1 eventgroup 0002")
	h.toAll(reliableOffer()).expect(subscribeTCP + localTCP + "; Subscribe 1234.0001 v1 0002 tcp:" + localTCP)
	// A connection that is there serves the next subscription at once.
	b.must(b.m.Subscribe(b.now, reliable(3))).expect("to 10.0.0.2: Subscribe 1234.0001 v1 0003 tcp:" + localTCP)
}

// A connection told unasked (a call opened it) is used.
func TestConnectedUnasked(t *testing.T) {
	b := newBench(t)
	b.host(server).toAll(reliableOffer())
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP)))
	b.trace = nil
	b.must(b.m.Subscribe(b.now, reliable(1))).expect(subscribeTCP + localTCP)
}

// TCP-3: a connection that closes is asked for again at once, one that cannot be
// had with the next offer; then the subscription starts afresh.
func TestReconnect(t *testing.T) {
	b, h := connecting(t)
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(subscribeTCP + localTCP)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	b.did(b.m.Disconnected(b.now, serverTCP)).expect(lost1+"disconnected", connect+"false")
	b.did(b.m.Disconnected(b.now, serverTCP)).expect()
	b.did(b.m.Disconnected(b.now, serverTCP)).expect()
	h.toAll(reliableOffer()).expect(connect + "false")
	b.did(b.m.Connected(b.now, serverTCP, ap("10.0.0.1:5001"))).expect(
		pairTCP + "10.0.0.1:5001; Subscribe 1234.0001 v1 0001 tcp:10.0.0.1:5001")
	h.toUs(ack(climate, 1, 5)).expect(acked1)
}

// A connection that was replaced ends what ran over the old one.
func TestConnectionReplaced(t *testing.T) {
	b, h := connecting(t)
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(subscribeTCP + localTCP)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect()
	b.did(b.m.Connected(b.now, serverTCP, ap("10.0.0.1:5001"))).expect(lost1+"disconnected",
		pairTCP+"10.0.0.1:5001; Subscribe 1234.0001 v1 0001 tcp:10.0.0.1:5001")
}

// SUB-11: a Subscribe may overtake its connection at the server, which then
// refuses it; a new connection would be overtaken as well. So the next offer tries
// the same one again, and only after a second Nack the connection is to be checked.
func TestNackChecksConnection(t *testing.T) {
	b, h := connecting(t)
	const nacked = "nacked 1234.0001 v1 eventgroup 0001"
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(subscribeTCP + localTCP)
	h.toUs(ack(climate, 1, 0)).expect(nacked)
	b.run(time.Second)
	b.trace = nil
	h.toAll(reliableOffer()).expect(subscribeTCP + localTCP)
	h.toUs(ack(climate, 1, 0)).expect(nacked)
	h.toAll(reliableOffer()).expect(connect + "true")
	for range 2 { // each connection gets its two chances
		b.did(b.m.Connected(b.now, serverTCP, ap("10.0.0.1:5001"))).expect(subscribeTCP + "10.0.0.1:5001")
		h.toUs(ack(climate, 1, 0)).expect(nacked)
		h.toAll(reliableOffer()).expect(subscribeTCP + "10.0.0.1:5001")
		h.toUs(ack(climate, 1, 0)).expect(nacked)
		h.toAll(reliableOffer()).expect(connect + "true")
	}
	b.did(b.m.Connected(b.now, serverTCP, ap("10.0.0.1:5001"))).expect(subscribeTCP + "10.0.0.1:5001") // it was fine
}

// Case 55, CL-8: with the instance its connection is forgotten, and asked for
// again when it returns.
func TestCase55ConnectionForgotten(t *testing.T) {
	b, h := connecting(t)
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(subscribeTCP + localTCP)
	h.toUs(ack(climate, 1, 5)).expect(acked1)
	b.run(100 * time.Millisecond)
	h.restart()
	h.toAll(reliableOffer()).expect("rebooted 10.0.0.2", lost1+"peer restarted", gone+"peer restarted",
		"available 1234.0001 v1 tcp:10.0.0.2:3001", connect+"false")
	b.did(b.m.Connected(b.now, serverTCP, ap("10.0.0.1:5001"))).expect(subscribeTCP + "10.0.0.1:5001")
	// Another instance at the same endpoint keeps it.
	other := offer(door, 30, tcp("10.0.0.2:3001"))
	h.toAll(other)
	h.toAll(offer(climate, 0))
	b.trace = nil
	h.toAll(reliableOffer()).expect("available 1234.0001 v1 tcp:10.0.0.2:3001", subscribeTCP+"10.0.0.1:5001")
	require.Len(t, availableNow(b), 2)
}

// UDP and TCP endpoints go together where both are wanted and offered.
func TestSubscribeBothProtocols(t *testing.T) {
	b := newBench(t)
	s := wanted(1)
	s.TCP = true
	b.must(b.m.Subscribe(b.now, s))
	b.host(server).toAll(offer(climate, 30, udp("10.0.0.2:3000"), tcp("10.0.0.2:3001")))
	b.trace = nil
	b.did(b.m.Connected(b.now, serverTCP, ap(localTCP))).expect(
		"to 10.0.0.2: Subscribe 1234.0001 v1 0001 udp:10.0.0.1:4000 tcp:10.0.0.1:5000")
}
