package sd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

const answer = "to 10.0.0.3: Offer 1234.0001 v1" + climateEndpoints

// Case 67, SV-4: a Find by multicast is answered after a delay, by unicast at
// once; the answer is unicast.
func TestCase67FindDelay(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.toUs(find(climate)).expect("400ms " + answer)
	h.toAll(find(climate)).expect()
	b.run(50 * time.Millisecond).expect("420ms " + answer)

	random := offering(t, func(c *sd.Config) {
		c.RequestResponseDelayMin, c.RequestResponseDelayMax = 10*time.Millisecond, 50*time.Millisecond
		c.CyclicOfferDelay = time.Hour
	})
	h = random.host(client)
	waits := map[time.Duration]bool{}
	for range 50 {
		h.toAll(find(climate)).expect()
		next, ok := random.m.Next()
		require.True(t, ok)
		wait := next.Sub(random.now)
		require.GreaterOrEqual(t, wait, 10*time.Millisecond)
		require.LessOrEqual(t, wait, 50*time.Millisecond)
		waits[wait] = true
		random.run(wait).expect(answer)
	}
	require.Greater(t, len(waits), 40)
}

// SV-6a: Finds that wait together are answered together, and once.
func TestFindAnswersArePacked(t *testing.T) {
	b := offering(t)
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000))).run(50 * time.Millisecond)
	b.expect("to all: Offer 2000.0007 v2 udp:10.0.0.1:3000")
	h := b.host(client)
	h.toAll(find(climate), find(door), find(climate)).expect()
	b.run(10 * time.Millisecond)
	h.toAll(find(door)).expect()
	b.run(30 * time.Millisecond).expect(answer + "; Offer 2000.0007 v2 udp:10.0.0.1:3000")
}

// SV-3: wildcards, majors and minors.
func TestFindMatching(t *testing.T) {
	minor := func(k someip.InstanceKey, minor uint32) entry {
		return changed(find(k), func(e *entry) { e.Minor = minor })
	}
	key := func(instance uint16, major uint8) someip.InstanceKey {
		return someip.InstanceKey{Service: climate.Service, Instance: instance, Major: major}
	}
	for _, tc := range []struct {
		name  string
		find  entry
		match bool
	}{
		{"exact", find(climate), true},
		{"any instance", find(key(0xFFFF, 1)), true},
		{"any major", find(key(1, 0xFF)), true},
		{"any of both", find(key(0xFFFF, 0xFF)), true},
		{"other instance", find(key(2, 1)), false},
		{"other major", find(key(1, 2)), false},
		{"other service", find(door), false},
		{"same minor", minor(climate, 3), true},
		{"lower minor", minor(climate, 2), true},
		{"higher minor", minor(climate, 4), false},
	} {
		b := offering(t)
		b.host(client).toUs(tc.find)
		require.Equal(t, tc.match, len(b.acts) == 1, tc.name)
	}
}

// SV-5, SV-6: no answer without the unicast flag, nor before the first Offer.
func TestFindIgnored(t *testing.T) {
	b := offering(t)
	h := b.host(client)
	h.flags = sd.FlagReboot
	h.toUs(find(climate)).run(100 * time.Millisecond).expect()
	require.EqualValues(t, 1, b.m.Stats().IgnoredFinds)

	b = newBench(t)
	b.must(b.m.Offer(b.now, climateOffer()))
	b.host(client).toUs(find(climate)).expect()
	require.EqualValues(t, 1, b.m.Stats().IgnoredFinds)
}

// SV-6: an answer in the repetition phase loses no repetition.
func TestFindInRepetition(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Offer(b.now, climateOffer())).run(60 * time.Millisecond)
	b.host(client).toUs(find(climate)).run(300 * time.Millisecond)
	const line = " to all: Offer 1234.0001 v1" + climateEndpoints
	b.expect("50ms"+line, "60ms "+answer, "150ms"+line, "350ms"+line)
}

// What was withdrawn while an answer waited is not offered.
func TestFindAnswerAfterStop(t *testing.T) {
	b := offering(t)
	b.host(client).toAll(find(climate))
	b.did(b.m.StopOffer(b.now, climate))
	b.expect("to all: StopOffer 1234.0001 v1" + climateEndpoints)
	b.run(time.Second).expect()
}

// A Find that refers to endpoint options is processed all the same (9.5).
// VAL-3, FMT-12.
func TestFindWithOptions(t *testing.T) {
	b := offering(t)
	e := find(climate)
	e.options = []sd.Option{udp("10.0.0.3:1")}
	b.host(client).toUs(e).expect(answer)
}

// Case 104, SV-8: two majors of one instance are two offers.
func TestCase104Majors(t *testing.T) {
	b := offering(t)
	v2 := climate
	v2.Major = 2
	b.must(b.m.Offer(b.now, simpleOffer(v2, 3005))).run(60 * time.Millisecond)
	b.expect("to all: Offer 1234.0001 v2 udp:10.0.0.1:3005")
	b.host(client).toUs(find(someip.InstanceKey{Service: 0x1234, Instance: 1, Major: 0xFF})).
		expect(answer + "; Offer 1234.0001 v2 udp:10.0.0.1:3005")
	b.did(b.m.StopOffer(b.now, v2)).expect("to all: StopOffer 1234.0001 v2 udp:10.0.0.1:3005")
	b.host(server).toUs(find(climate)).expect("to 10.0.0.2: Offer 1234.0001 v1" + climateEndpoints)
}

// Configuration and load balancing travel with the offer.
// FMT-9, FMT-10.
func TestOfferOptions(t *testing.T) {
	b := newBench(t)
	spec := simpleOffer(climate, 3000)
	spec.Configuration = []string{"name=left"}
	spec.LoadBalancing = &sd.LoadBalancing{Priority: 1, Weight: 100}
	b.must(b.m.Offer(b.now, spec)).run(60 * time.Millisecond)
	sends := b.sends()
	require.Len(t, sends, 1)
	require.Equal(t, []sd.Option{udp("10.0.0.1:3000"), config("name=left"), sd.LoadBalancingOption(1, 100)}, sends[0].Options)
	require.EqualValues(t, 3, sends[0].Entries[0].Count1)
}
