package runtime

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/tp"
)

// AutoPort as a port of a [ServiceConfig] asks for a free port out of
// [NetworkConfig.Ports].
const AutoPort uint16 = 0xFFFF

// Defaults of an [SDConfig] and of a [NetworkConfig].
const (
	DefaultSDPort       uint16 = 30490
	DefaultCallTimeout         = 5 * time.Second
	DefaultDrainTimeout        = 500 * time.Millisecond
)

// DefaultSDGroup is the multicast group of service discovery that most
// deployments use.
func DefaultSDGroup() netip.Addr { return netip.AddrFrom4([4]byte{224, 244, 224, 245}) }

// Config describes a [Stack].
type Config struct {
	Networks []NetworkConfig
	Logger   *slog.Logger // nil: no log
}

// Range is a closed interval of ports or client ids. The zero Range is empty.
type Range struct{ First, Last uint16 }

// Contains reports whether v lies in r.
func (r Range) Contains(v uint16) bool { return r != Range{} && r.First <= v && v <= r.Last }

// NetworkConfig describes one SOME/IP-SD domain: an address and the multicast
// group on which its hosts find each other.
type NetworkConfig struct {
	// Name identifies the network within the stack, for [Stack.Network] and logs.
	Name string
	// Address is the own address with the subnet in which peers are accepted.
	// Two stacks, of whatever make, must not share one address (RB-9).
	Address netip.Prefix
	// Interface is the network device; empty: the one that has Address. A link-local
	// address needs it.
	Interface string
	// SD are the parameters of service discovery.
	SD SDConfig
	// ClientIDs is the block that clients of this network take their ids from.
	// It must be unique among all that talk to the same servers (SES-4).
	ClientIDs Range
	// Ports are what [AutoPort] chooses from.
	Ports Range
	// ClientPorts are the local UDP ports of the client side; the zero Range
	// lets the system choose (UDP-6).
	ClientPorts Range
	// CallTimeout bounds a call whose context has no deadline (SES-6).
	// 0: [DefaultCallTimeout].
	CallTimeout time.Duration
	// DrainTimeout bounds how long closing waits for requests that were received
	// to be answered. 0: 500 ms; negative: not at all.
	DrainTimeout time.Duration
	// MaxMessage is the longest TCP message accepted, in bytes (TCP-4).
	// 0: 10 MiB of payload.
	MaxMessage int
	// Reassembly bounds the segmented messages that are under way (TP-8, TP-9): how
	// many, of how much memory, and for how long. Its Limit is that of the
	// deployments. OnCancel hears of what is thrown away; it must not block, and must
	// not call back into the package.
	Reassembly tp.Config
	// AnySubnet takes peers of other subnets than that of Address, too (case 77).
	AnySubnet bool
	// Marking is that of everything sent: DSCP, and the priority that a VLAN maps.
	Marking endpoint.Marking
	// Sockets are used instead of the system's, for tests; nil: the system's. They
	// have no TCP.
	Sockets Sockets
	// AddressTimeout is how long opening waits for Address to appear. 0: not at all.
	AddressTimeout time.Duration
	// ReceiveBuffer is asked of the kernel for each UDP socket, in bytes
	// (UDP-8). 0: 2 MiB.
	ReceiveBuffer int
	// MagicCookies puts a magic cookie at the head of what is written to TCP.
	// Cookies of a peer are always recognised.
	MagicCookies bool
	// Strict drops a request whose return code is not 0 instead of serving
	// it as if the code were 0 (RC-1).
	Strict bool
	// NoSessions sends events and fire-and-forget requests with session 0, but for
	// segmented ones (SES-1, TP-4). Calls always have one (SES-2).
	NoSessions bool
	// SilentOnWrongProtocol drops a request of another protocol version instead
	// of answering E_WRONG_PROTOCOL_VERSION (HDR-3).
	SilentOnWrongProtocol bool
}

// SDConfig are the parameters of service discovery on one network. Zero values
// stand for the defaults given (digest 9.1).
type SDConfig struct {
	Group netip.Addr // 224.244.224.245
	Port  uint16     // 30490

	InitialDelayMin      time.Duration // 10 ms; set Max to a negative value for no delay
	InitialDelayMax      time.Duration // 100 ms
	RepetitionsBaseDelay time.Duration // 100 ms
	RepetitionsMax       int           // 3; negative: no repetition phase
	CyclicOfferDelay     time.Duration // 1 s
	TTL                  time.Duration // of offers: 3 s, whole seconds
	SubscribeTTL         time.Duration // 5 s, whole seconds; must exceed the offer cycle of peers (SUB-2)
	RequestResponseMin   time.Duration // 10 ms; set Max to a negative value for no delay
	RequestResponseMax   time.Duration // 50 ms
	// SubscribeDelayMin and Max bound the wait before Subscribes that a multicast
	// offer triggers. 0 and 0: none.
	SubscribeDelayMin, SubscribeDelayMax time.Duration
	// TTLFactor stretches the lifetimes that peers give, for networks that lose
	// messages; SubscriptionTTLFactor those of subscriptions. 0: 1, and TTLFactor.
	TTLFactor, SubscriptionTTLFactor int
	// OfferTTLFactors and SubscriptionTTLFactors replace both for single instances.
	OfferTTLFactors, SubscriptionTTLFactors []sd.TTLFactor
	// MulticastAnswers answers a Find by multicast if the last multicast offer is half
	// a cycle old or older; otherwise, and without it, by unicast (SV-4).
	MulticastAnswers bool
	// MaxSubscribers bounds the subscriptions of one peer to one eventgroup. 0: 16.
	MaxSubscribers int
	// AnySourcePort accepts service discovery from ports other than Port (case 73).
	AnySourcePort bool
	// InitialDataControl announces explicit initial data control (SUB-7).
	InitialDataControl bool
}

func (c SDConfig) withDefaults() SDConfig {
	if !c.Group.IsValid() {
		c.Group = DefaultSDGroup()
	}
	if c.Port == 0 {
		c.Port = DefaultSDPort
	}
	c.InitialDelayMin, c.InitialDelayMax = delayRange(c.InitialDelayMin, c.InitialDelayMax, 10*time.Millisecond, 100*time.Millisecond)
	c.RequestResponseMin, c.RequestResponseMax = delayRange(c.RequestResponseMin, c.RequestResponseMax, 10*time.Millisecond, 50*time.Millisecond)
	c.RepetitionsBaseDelay = orDefault(c.RepetitionsBaseDelay, 100*time.Millisecond)
	switch {
	case c.RepetitionsMax == 0:
		c.RepetitionsMax = 3
	case c.RepetitionsMax < 0:
		c.RepetitionsMax = 0
	}
	c.CyclicOfferDelay = orDefault(c.CyclicOfferDelay, time.Second)
	c.TTL = orDefault(c.TTL, 3*time.Second)
	c.TTLFactor = orDefault(c.TTLFactor, 1)
	c.SubscribeDelayMax = max(c.SubscribeDelayMin, c.SubscribeDelayMax)
	c.SubscribeTTL = orDefault(c.SubscribeTTL, 5*time.Second)
	return c
}

// delayRange applies the rules of the two random delays: both zero is the
// default, a negative maximum is no delay.
func delayRange(lo, hi, defLo, defHi time.Duration) (time.Duration, time.Duration) {
	switch {
	case hi < 0:
		return 0, 0
	case lo == 0 && hi == 0:
		return defLo, defHi
	default:
		return lo, max(lo, hi)
	}
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// accept returns the subnets that peers are in, those on the link included.
func (c NetworkConfig) accept() []netip.Prefix {
	switch own := c.Address.Masked(); {
	case c.AnySubnet:
		return nil
	case own.Addr().Is6():
		return []netip.Prefix{netip.PrefixFrom(own.Addr().WithZone(""), own.Bits()), linkLocal}
	default:
		return []netip.Prefix{own}
	}
}

var linkLocal = netip.MustParsePrefix("fe80::/10")

// Validate reports what is wrong with c; several problems are joined.
func (c NetworkConfig) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("runtime: network %q: "+format, append([]any{c.Name}, args...)...))
	}
	sd := c.SD.withDefaults()
	if c.Name == "" {
		bad("no name")
	}
	switch addr := c.Address.Addr(); {
	case !c.Address.IsValid():
		bad("no valid address")
	case addr.IsMulticast() || addr.IsUnspecified():
		bad("address %v is not that of a host", addr)
	case addr.Is6() && addr.IsLinkLocalUnicast() && c.Interface == "":
		bad("address %v is of one link: its interface must be given", addr)
	case sd.Group.Is4() != addr.Is4():
		bad("SD group %v and address %v are of different families", sd.Group, addr)
	}
	if !sd.Group.IsMulticast() {
		bad("SD group %v is not a multicast address", sd.Group)
	}
	for _, ttl := range []time.Duration{sd.TTL, sd.SubscribeTTL} {
		if ttl < time.Second || ttl%time.Second != 0 || ttl > 0xFFFFFF*time.Second {
			bad("SD TTL %v is not a number of seconds from 1 to 16777215", ttl) // case 50
		}
	}
	if c.ClientIDs.First == 0 || c.ClientIDs.Last < c.ClientIDs.First || c.ClientIDs.Last == 0xFFFF {
		bad("client ids %#04x-%#04x are no block within 0x0001-0xfffe", c.ClientIDs.First, c.ClientIDs.Last)
	}
	for _, r := range []Range{c.Ports, c.ClientPorts} {
		switch {
		case r == Range{}:
		case r.First == 0 || r.Last < r.First:
			bad("ports %d-%d are no range", r.First, r.Last)
		case r.Contains(sd.Port):
			bad("ports %d-%d contain the SD port %d", r.First, r.Last, sd.Port) // UDP-6
		}
	}
	return errors.Join(errs...)
}
