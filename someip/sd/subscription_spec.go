package sd

import (
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip"
)

// SubscriptionKey identifies a subscription of ours: there is one per eventgroup
// whatever the number of local consumers.
type SubscriptionKey struct {
	Instance   someip.InstanceKey
	Eventgroup uint16
}

// String returns the instance and the eventgroup.
func (k SubscriptionKey) String() string {
	return fmt.Sprintf("%v eventgroup %04x", k.Instance, k.Eventgroup)
}

// Subscription describes a subscription that we want for as long as the
// instance is offered, again and again.
type Subscription struct {
	Key SubscriptionKey
	// UDP is our endpoint for events over UDP; invalid: we want none.
	UDP netip.AddrPort
	// TCP says that we want events over TCP. Subscribing then waits for a
	// connection (NeedConnection).
	TCP bool
	TTL uint32 // seconds; 0: that of the Config
}

func (s *Subscription) validate() error {
	switch {
	case !s.Key.Instance.Valid() || s.Key.Eventgroup == 0:
		return fmt.Errorf("%w: %v: reserved id or wildcard", ErrSub, s.Key)
	case !s.UDP.IsValid() && !s.TCP:
		return fmt.Errorf("%w: %v: neither UDP nor TCP", ErrSub, s.Key)
	case s.UDP.IsValid() && (!usableAddr(s.UDP.Addr()) || s.UDP.Addr().IsMulticast() || s.UDP.Port() == 0):
		return fmt.Errorf("%w: %v: endpoint %v", ErrSub, s.Key, s.UDP)
	case s.TTL > maxTTL:
		return fmt.Errorf("%w: %v: TTL above 0xffffff", ErrSub, s.Key)
	}
	return nil
}
