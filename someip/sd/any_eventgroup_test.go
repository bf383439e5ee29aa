package sd_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/sd"
)

const (
	asked1  = "asked 10.0.0.3 1234.0001 v1 0001.0 udp:10.0.0.3:4000"
	joined1 = subscriber1 + " initial=true"
)

// offeringAny offers climate without knowing its eventgroups.
func offeringAny(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	spec := climateOffer()
	spec.Eventgroups, spec.AnyEventgroup = nil, true
	b.must(b.m.Offer(b.now, spec)).run(400 * time.Millisecond)
	b.trace, b.acts = nil, nil
	return b
}

// who returns the subscriber that the owner was asked about last.
func (b *bench) who() sd.Subscriber {
	b.t.Helper()
	for _, a := range b.acts {
		if a, ok := a.(sd.SubscribeAsked); ok {
			return a.Subscriber
		}
	}
	b.t.Fatal("nobody was asked about")
	return sd.Subscriber{}
}

// The owner decides which eventgroups there are; nothing is answered before.
func TestAnyEventgroup(t *testing.T) {
	b := offeringAny(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP)))
	who := b.who()
	b.expect(asked1)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect() // asked already
	b.did(b.m.AnswerSubscribe(b.now, who, true)).expect(ack1, joined1)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(ack1)
	// Later it is refused: the client hears of that when it renews.
	b.did(b.m.AnswerSubscribe(b.now, who, false)).expect()
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(asked1)
	b.did(b.m.AnswerSubscribe(b.now, who, false)).expect(nack1)
	b.did(b.m.AnswerSubscribe(b.now, who, true)).expect()
	require.Empty(t, b.m.AnswerSubscribe(b.now, sd.Subscriber{Instance: door}, true))
}

// What ends while the owner is asked is told to it.
func TestAnyEventgroupEnds(t *testing.T) {
	b := offeringAny(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(asked1)
	h.toUs(sub(climate, 1, 0, udp(clientUDP))).expect(subscriber1 + " removed: stopped")
	h.toUs(sub(climate, 1, 1, udp(clientUDP))).expect(asked1)
	b.run(5 * time.Second)
	for _, want := range []string{nack1, subscriber1 + " removed: expired"} {
		require.Condition(t, func() bool {
			return slices.ContainsFunc(b.trace, func(line string) bool { return strings.HasSuffix(line, want) })
		}, want)
	}
	b.trace, b.acts = nil, nil
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(asked1)
	h.restart()
	h.toUs(sub(climate, 1, 3, udp(clientUDP))).expect(
		"rebooted 10.0.0.3", subscriber1+" removed: peer restarted", asked1)
	b.did(b.m.StopOffer(b.now, climate))
	require.Contains(t, b.trace[len(b.trace)-1], "removed: withdrawn")
}

// A subscriber that wants TCP too is asked about once it is connected.
func TestAnyEventgroupOverTCP(t *testing.T) {
	b := offeringAny(t)
	h := b.host(client)
	h.toUs(sub(climate, 1, 3, udp(clientUDP), tcp(clientTCP))).expect()
	b.did(b.m.Accepted(b.now, ap("10.0.0.1:3001"), ap(clientTCP)))
	who := b.who()
	b.expect(asked1 + " tcp:10.0.0.3:4001")
	b.did(b.m.AnswerSubscribe(b.now, who, true)).expect(ack1, subscriber1+" tcp:10.0.0.3:4001 initial=true")
	// No endpoint at all, and no eventgroup.
	h.toUs(sub(climate, 1, 3)).expect(nack1, subscriber1+" tcp:10.0.0.3:4001 removed: stopped")
	h.toUs(sub(climate, 0xFFFF, 3, udp(clientUDP))).expect("to 10.0.0.3: Nack 1234.0001 v1 ffff")
}

// SUB-6: who joins a subscription gets the initial events by one that is made
// anew; it is never lost for that.
func TestRefresh(t *testing.T) {
	b, h := subscribed(t)
	b.did(b.m.Refresh(b.now, wanted(1).Key)).expect(pair1)
	b.did(b.m.Refresh(b.now, wanted(1).Key)).expect(pair1)
	h.toUs(ack(climate, 1, 5)).expect()
	b.run(time.Second)
	h.toAll(climateUp(30)).expect(subscribe1)
	h.toUs(ack(climate, 1, 5)).expect()
	require.Empty(t, b.m.Refresh(b.now, wanted(2).Key))
	b.must(b.m.Subscribe(b.now, wanted(2)))
	b.trace = nil
	// Of one that is not acknowledged they may have come already.
	b.did(b.m.Refresh(b.now, wanted(2).Key)).expect()
	h.toUs(ack(climate, 2, 5)).expect("acked 1234.0001 v1 eventgroup 0002",
		strings.ReplaceAll(pair1, "v1 0001", "v1 0002"))
	h.toUs(ack(climate, 2, 5)).expect()
}
