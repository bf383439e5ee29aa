package sd_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// FuzzMachine feeds a machine with datagrams from a few peers. It must not
// panic, must not keep more than its limits allow, and everything it sends must
// be a message.
func FuzzMachine(f *testing.F) {
	for _, tc := range golden {
		f.Add(tc.bytes, tc.bytes, uint8(0))
	}
	h := func(entries ...entry) []byte {
		m := sd.Message{Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast}
		for _, e := range entries {
			e.Index1, e.Count1 = uint8(len(m.Options)), uint8(len(e.options))
			m.Entries, m.Options = append(m.Entries, e.Entry), append(m.Options, e.options...)
		}
		b, err := m.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add(h(find(climate), sub(climate, 1, 3, udp(clientUDP))), h(sub(climate, 1, 0), sub(climate, 4, 3, udp(clientUDP), tcp(clientTCP))), uint8(1))
	f.Add(h(offer(door, 3, udp("10.0.0.2:1"))), h(ack(door, 1, 3, sd.MulticastOption(ap("224.1.2.3:5")))), uint8(7))
	f.Add(h(offer(door, 0)), h(ack(door, 1, 0)), uint8(255))

	captured := discovery(f)
	for i, b := range captured {
		f.Add(b, captured[len(captured)-1-i], uint8(i))
	}

	limits := sd.Limits{
		Peers: 3, Offers: 4, OffersPerPeer: 2, Subscribers: 3, SubscribersPerPeer: 2, SubscribersPerGroup: 1,
		NacksPerSecond: 2, EntriesPerSecond: 50, AnswersPerSecond: 2, RenewalsPerSecond: 2, ReturnsPerSecond: 2, AcceptedTCPConnections: 1,
	}
	f.Fuzz(func(t *testing.T, first, second []byte, how uint8) {
		c := testConfig()
		c.Limits = limits
		c.InitialDataControl = how&4 != 0
		if how&8 != 0 {
			c.Subnet = netip.Prefix{}
		}
		m, err := sd.New(c, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1000, 0)
		subscribers := 0
		check := func(acts []sd.Action) {
			for _, a := range acts {
				switch a := a.(type) {
				case sd.Send:
					msg, rest, err := sd.Parse(a.Data)
					if err != nil || msg.OptionErr != nil || len(rest) > 0 || len(a.Data) > 16+c.MaxPayload {
						t.Fatalf("sent %x: %v %v", a.Data, err, msg.OptionErr)
					}
				case sd.SubscriberAdded:
					subscribers++
				case sd.SubscriberRemoved:
					subscribers--
				}
			}
			offers := 0
			for range m.Available() {
				offers++
			}
			if offers > limits.Offers || subscribers > 3*limits.Subscribers {
				t.Fatalf("%d offers, %d subscribers", offers, subscribers)
			}
		}
		must := func(acts []sd.Action, err error) {
			if err != nil {
				t.Fatal(err)
			}
			check(acts)
		}
		must(m.Offer(now, climateOffer()))
		check(m.Find(now, door))
		for _, k := range []someip.InstanceKey{door, {Service: 0x1234, Instance: 0x5678, Major: 1}} {
			must(m.Subscribe(now, sd.Subscription{Key: sd.SubscriptionKey{Instance: k, Eventgroup: 1}, UDP: ap("10.0.0.1:4000"), TCP: how&16 != 0}))
		}
		for i, data := range [][]byte{first, second, first, second, append(first, second...)} {
			from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2 + byte(i)&how&3}), 30490)
			check(m.Receive(now, from, how>>i&1 != 0, data))
			now = now.Add(time.Duration(how) * 10 * time.Millisecond)
			check(m.Tick(now))
			if how&32 != 0 {
				check(m.Connected(now, serverTCP, ap(localTCP)))
				check(m.Accepted(now, ap("10.0.0.1:3001"), ap(clientTCP)))
			}
		}
		for range 100 {
			next, ok := m.Next()
			if !ok {
				break
			}
			check(m.Tick(next))
		}
		check(m.Disconnected(now, serverTCP))
		check(m.Closed(now, ap("10.0.0.1:3001"), ap(clientTCP)))
		check(m.LinkDown(now))
		check(m.LinkUp(now))
		check(m.Shutdown(now))
	})
}
