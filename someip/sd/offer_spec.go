package sd

import (
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip"
)

// Endpoints says where an instance or a subscriber is reached. An invalid
// address means: not over this protocol.
type Endpoints struct {
	UDP, TCP netip.AddrPort
}

// OfferSpec describes an instance that we offer.
type OfferSpec struct {
	Key       someip.InstanceKey
	Minor     uint32
	Endpoints Endpoints // at least one
	TTL       uint32    // seconds; 0: that of the Config

	Eventgroups []Eventgroup
	// AnyEventgroup leaves it to the owner which eventgroups there are: each
	// Subscribe that is no renewal is told as SubscribeAsked, and answered by
	// AnswerSubscribe.
	AnyEventgroup bool
	// Configuration items, "key=value" each, sent with the offer.
	Configuration []string
	// LoadBalancing is sent with the offer if not nil.
	LoadBalancing *LoadBalancing
}

// Eventgroup describes an eventgroup of an instance that we offer. UDP and TCP
// say over which protocols its events go: a subscriber must have an endpoint for
// each (SUB-9).
type Eventgroup struct {
	ID       uint16
	UDP, TCP bool
	// Multicast is where UDP events go once there are enough subscribers. If
	// valid it is in every Ack (2.2), and a Subscribe without UDP endpoint is
	// taken as well. When to switch is the sender's business.
	Multicast netip.AddrPort
}

// LoadBalancing ranks instances: see LoadBalancingOption.
type LoadBalancing struct {
	Priority, Weight uint16
}

// validate checks the offer against the configuration of its network.
func (o *OfferSpec) validate(c *Config) error {
	if !o.Key.Valid() {
		return fmt.Errorf("%w: %v: reserved id or wildcard", ErrOffer, o.Key)
	}
	if o.TTL > maxTTL {
		return fmt.Errorf("%w: %v: TTL above 0xffffff", ErrOffer, o.Key)
	}
	if !o.Endpoints.UDP.IsValid() && !o.Endpoints.TCP.IsValid() {
		return fmt.Errorf("%w: %v: no endpoint", ErrOffer, o.Key)
	}
	for _, at := range []netip.AddrPort{o.Endpoints.UDP, o.Endpoints.TCP} {
		switch {
		case at == netip.AddrPort{}:
		case !usableAddr(at.Addr()) || at.Addr().IsMulticast() || at.Port() == 0:
			return fmt.Errorf("%w: %v: endpoint %v", ErrOffer, o.Key, at)
		}
	}
	if o.Endpoints.UDP.IsValid() && o.Endpoints.UDP.Port() == c.Port { // case 74
		return fmt.Errorf("%w: %v: port %d is that of service discovery", ErrOffer, o.Key, c.Port)
	}
	seen := make(map[uint16]bool, len(o.Eventgroups))
	for _, g := range o.Eventgroups {
		switch {
		case g.ID == 0 || g.ID == 0xFFFF || seen[g.ID]:
			return fmt.Errorf("%w: %v: eventgroup %04x reserved or twice", ErrOffer, o.Key, g.ID)
		case g.UDP && !o.Endpoints.UDP.IsValid(), g.TCP && !o.Endpoints.TCP.IsValid():
			return fmt.Errorf("%w: %v: eventgroup %04x needs an endpoint that is not offered", ErrOffer, o.Key, g.ID)
		case g.Multicast != netip.AddrPort{} && (!g.UDP || !g.Multicast.Addr().IsMulticast() || g.Multicast.Port() == 0):
			return fmt.Errorf("%w: %v: eventgroup %04x: multicast endpoint %v", ErrOffer, o.Key, g.ID, g.Multicast)
		}
		seen[g.ID] = true
	}
	return nil
}

// options returns the options that go with the offer.
func (o *OfferSpec) options() ([]Option, error) {
	var opts []Option
	if o.Endpoints.UDP.IsValid() {
		opts = append(opts, EndpointOption(o.Endpoints.UDP, UDP))
	}
	if o.Endpoints.TCP.IsValid() {
		opts = append(opts, EndpointOption(o.Endpoints.TCP, TCP))
	}
	if len(o.Configuration) > 0 {
		c, err := ConfigurationOption(o.Configuration...)
		if err != nil {
			return nil, fmt.Errorf("%w: %v: %w", ErrOffer, o.Key, err)
		}
		opts = append(opts, c)
	}
	if lb := o.LoadBalancing; lb != nil {
		opts = append(opts, LoadBalancingOption(lb.Priority, lb.Weight))
	}
	return opts, nil
}
