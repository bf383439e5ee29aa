package sd

import (
	"cmp"
	"slices"
	"time"

	"carisma.dev/gateway/someip"
)

// TTLFactor stretches lifetimes of one instance, whatever its major version.
type TTLFactor struct {
	Service, Instance uint16
	Factor            int // 1 to 100
}

func validFactors(all []TTLFactor) bool {
	return !slices.ContainsFunc(all, func(f TTLFactor) bool { return f.Factor < 1 || f.Factor > 100 })
}

func factorOf(all []TTLFactor, key someip.InstanceKey, general int) int {
	for _, f := range all {
		if f.Service == key.Service && f.Instance == key.Instance {
			return f.Factor
		}
	}
	return general
}

func (c *Config) offerFactor(key someip.InstanceKey) int {
	return factorOf(c.OfferTTLFactors, key, c.TTLFactor)
}

func (c *Config) subscriptionFactor(key someip.InstanceKey) int {
	return factorOf(c.SubscriptionTTLFactors, key, cmp.Or(c.SubscriptionTTLFactor, c.TTLFactor))
}

// ttlSlack is what a lifetime lasts beyond its seconds, so that a renewal sent in
// time is not late (case 59).
const ttlSlack = 50 * time.Millisecond

// setTTL lets t fire when the lifetime that a peer gave has passed.
func (m *Machine) setTTL(t *timer, now time.Time, ttl uint32, factor int) {
	if ttl == TTLForever {
		m.timers.stop(t)
		return
	}
	m.timers.set(t, now.Add(time.Duration(ttl)*time.Duration(factor)*time.Second+ttlSlack))
}
