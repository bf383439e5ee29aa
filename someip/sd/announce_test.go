package sd_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

const climateEndpoints = " udp:10.0.0.1:3000 tcp:10.0.0.1:3001"

// Case 71: the gaps of the repetition phase double exactly; then the cycle.
// PH-1 to PH-3, SV-2.
func TestCase71Phases(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Offer(b.now, climateOffer())).expect()
	const line = " to all: Offer 1234.0001 v1" + climateEndpoints
	b.run(4*time.Second).expect("50ms"+line, "150ms"+line, "350ms"+line, "1.35s"+line, "2.35s"+line, "3.35s"+line)
}

// PH-2.
func TestPhasesWithoutRepetition(t *testing.T) {
	b := newBench(t, func(c *sd.Config) {
		c.RepetitionsMax = 0
		c.InitialDelayMin, c.InitialDelayMax = 0, 0
	})
	b.must(b.m.Offer(b.now, climateOffer())).expect()
	const line = " to all: Offer 1234.0001 v1" + climateEndpoints
	b.run(2*time.Second).expect("0s"+line, "1s"+line, "2s"+line)
}

// Case 82: the initial wait is random within its bounds, a new one for each start.
// PH-1.
func TestCase82InitialDelay(t *testing.T) {
	waits := map[time.Duration]bool{}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		c := testConfig()
		c.InitialDelayMin, c.InitialDelayMax = 10*time.Millisecond, 100*time.Millisecond
		m, err := sd.New(c, rnd)
		require.NoError(t, err)
		now := time.Unix(0, 0)
		_, err = m.Offer(now, climateOffer())
		require.NoError(t, err)
		next, ok := m.Next()
		require.True(t, ok)
		wait := next.Sub(now)
		require.GreaterOrEqual(t, wait, c.InitialDelayMin)
		require.LessOrEqual(t, wait, c.InitialDelayMax)
		waits[wait] = true
	}
	require.Greater(t, len(waits), 40)
}

// Offers that start together share their messages, a later one joins the cycle
// of the others within the tolerance of 9.1.
func TestOffersShareMessages(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Offer(b.now, simpleOffer(climate, 3000)))
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000))).expect()
	const both = "to all: Offer 1234.0001 v1 udp:10.0.0.1:3000; Offer 2000.0007 v2 udp:10.0.0.1:3000"
	b.run(1400*time.Millisecond).expect("50ms "+both, "150ms "+both, "350ms "+both, "1.35s "+both)

	third := someip.InstanceKey{Service: 0x3000, Instance: 1, Major: 1}
	b.must(b.m.Offer(b.now, simpleOffer(third, 3000)))
	const late = "to all: Offer 3000.0001 v1 udp:10.0.0.1:3000"
	const all = both + "; Offer 3000.0001 v1 udp:10.0.0.1:3000"
	b.run(2*time.Second).expect("1.45s "+late, "1.55s "+late, "1.75s "+late, "2.35s "+all, "3.35s "+all)
}

func simpleOffer(k someip.InstanceKey, port uint16) sd.OfferSpec {
	return sd.OfferSpec{Key: k, Endpoints: sd.Endpoints{UDP: ap(fmt.Sprintf("10.0.0.1:%d", port))}}
}

// An offer that would have to wait less than the least initial delay gets its own.
func TestLateOfferWaitsToo(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Offer(b.now, simpleOffer(climate, 3000)))
	b.run(30 * time.Millisecond)
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000)))
	b.run(60*time.Millisecond).expect(
		"50ms to all: Offer 1234.0001 v1 udp:10.0.0.1:3000",
		"80ms to all: Offer 2000.0007 v2 udp:10.0.0.1:3000")
}

// SV-1: a thousand offers leave in full messages of 1380 bytes at most.
// UDP-3.
func TestManyOffersArePacked(t *testing.T) {
	b := newBench(t)
	for i := range 1000 {
		k := someip.InstanceKey{Service: 0x1000 + uint16(i), Instance: 1, Major: 1}
		b.must(b.m.Offer(b.now, simpleOffer(k, 3000+uint16(i%3)))) // three endpoints, shared
	}
	b.run(100 * time.Millisecond)
	entries := 0
	for _, a := range b.acts {
		require.LessOrEqual(t, len(a.(sd.Send).Data), 16+1380)
	}
	sends := b.sends()
	for i, m := range sends {
		require.EqualValues(t, i+1, m.Session)
		require.Len(t, m.Options, 3)
		entries += len(m.Entries)
	}
	require.Equal(t, 1000, entries)
	require.Len(t, sends, 13) // 83 entries and 3 options each
}

// Case 47: sessions start at 1 with the reboot flag, 0 is skipped, and a wrap
// clears the flag of that path alone.
// RB-1, RB-2.
func TestCase47SessionsAndFlags(t *testing.T) {
	b := offering(t)
	var last uint16 = 3
	wrapped := false
	for range 0x10010 {
		next, ok := b.m.Next()
		require.True(t, ok)
		b.did(b.m.Tick(next))
		for _, m := range b.sends() {
			require.NotZero(t, m.Session)
			require.Equal(t, someip.NextSession(last), m.Session)
			wrapped = wrapped || m.Session < last
			want := sd.FlagUnicast | sd.FlagReboot
			if wrapped {
				want = sd.FlagUnicast
			}
			require.Equal(t, want, m.Flags, "session %d", m.Session)
			last = m.Session
		}
		b.now = next
	}
	require.True(t, wrapped)
	b.host(client).toUs(find(climate))
	sends := b.sends()
	require.Len(t, sends, 1)
	require.EqualValues(t, 1, sends[0].Session)
	require.Equal(t, sd.FlagUnicast|sd.FlagReboot, sends[0].Flags)
}

// SV-7: StopOffer goes out once, by multicast, with the options of the offer.
func TestStopOffer(t *testing.T) {
	b := offering(t)
	b.must(b.m.Offer(b.now, simpleOffer(door, 3000))).run(100 * time.Millisecond)
	b.expect("to all: Offer 2000.0007 v2 udp:10.0.0.1:3000")
	b.did(b.m.StopOffer(b.now, climate, door, climate)).
		expect("to all: StopOffer 1234.0001 v1" + climateEndpoints + "; StopOffer 2000.0007 v2 udp:10.0.0.1:3000")
	b.run(time.Minute).expect()
	_, armed := b.m.Next()
	require.False(t, armed, "nothing is due any more")
}

// What was never announced needs no StopOffer.
func TestStopOfferInInitialWait(t *testing.T) {
	b := newBench(t)
	b.must(b.m.Offer(b.now, climateOffer()))
	b.did(b.m.StopOffer(b.now, climate)).expect()
	b.run(time.Minute).expect()
}

// Case 50: nothing is ever offered with TTL 0 by mistake.
func TestCase50TTLZeroRefused(t *testing.T) {
	c := testConfig()
	c.TTL = 0
	_, err := sd.New(c, nil)
	require.ErrorIs(t, err, sd.ErrConfig)
	b := newBench(t)
	b.must(b.m.Offer(b.now, climateOffer())) // TTL 0 in an offer: that of the configuration
	b.run(50 * time.Millisecond)
	require.EqualValues(t, 3, b.sends()[0].Entries[0].TTL)
	spec := simpleOffer(door, 1)
	spec.TTL = 7
	b.must(b.m.Offer(b.now, spec)).run(50 * time.Millisecond)
	require.EqualValues(t, 7, b.sends()[0].Entries[0].TTL)
}

// Case 74: no service on the port of service discovery.
// UDP-6.
func TestCase74ServiceOnSDPort(t *testing.T) {
	b := newBench(t)
	_, err := b.m.Offer(b.now, simpleOffer(climate, 30490))
	require.ErrorIs(t, err, sd.ErrOffer)
}

// ID-1.
func TestOfferRefused(t *testing.T) {
	b := offering(t)
	_, err := b.m.Offer(b.now, climateOffer())
	require.ErrorIs(t, err, sd.ErrOffered)
	for name, change := range map[string]func(*sd.OfferSpec){
		"instance any":        func(o *sd.OfferSpec) { o.Key.Instance = someip.AnyInstance },
		"no endpoint":         func(o *sd.OfferSpec) { o.Endpoints = sd.Endpoints{} },
		"multicast endpoint":  func(o *sd.OfferSpec) { o.Endpoints.UDP = ap("224.0.0.1:1") },
		"port 0":              func(o *sd.OfferSpec) { o.Endpoints.TCP = ap("10.0.0.1:0") },
		"TTL":                 func(o *sd.OfferSpec) { o.TTL = 1 << 24 },
		"eventgroup 0":        func(o *sd.OfferSpec) { o.Eventgroups = []sd.Eventgroup{{}} },
		"eventgroup twice":    func(o *sd.OfferSpec) { o.Eventgroups = []sd.Eventgroup{{ID: 1}, {ID: 1}} },
		"eventgroup protocol": func(o *sd.OfferSpec) { o.Eventgroups = []sd.Eventgroup{{ID: 1, TCP: true}} },
		"eventgroup group": func(o *sd.OfferSpec) {
			o.Eventgroups = []sd.Eventgroup{{ID: 1, UDP: true, Multicast: ap("10.0.0.1:1")}}
		},
		"configuration": func(o *sd.OfferSpec) { o.Configuration = []string{"=x"} },
	} {
		spec := simpleOffer(door, 3000)
		change(&spec)
		_, err := b.m.Offer(b.now, spec)
		require.ErrorIs(t, err, sd.ErrOffer, name)
	}
}

// Case 80: any multicast address can be the group.
func TestCase80Groups(t *testing.T) {
	for group, ok := range map[string]bool{
		"224.0.0.1": true, "232.1.2.3": true, "239.255.255.255": true, "240.0.0.1": false, "10.0.0.9": false, "ff14::1": false,
	} {
		c := testConfig()
		c.Group = netip.MustParseAddr(group)
		_, err := sd.New(c, nil)
		require.Equal(t, ok, err == nil, "%s: %v", group, err)
	}
	c := testConfig()
	c.Address, c.Group = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("ff14::1")
	c.Subnet = netip.MustParsePrefix("fd00::/64")
	_, err := sd.New(c, nil)
	require.NoError(t, err)
}
