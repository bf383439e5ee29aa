package sd

import (
	"fmt"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Config holds the parameters of service discovery on one network. Start from
// DefaultConfig: a zero duration or count means what it says.
type Config struct {
	// Address is our own address on the network. It must not be shared with
	// another stack (RB-9). Its zone is the one of the network.
	Address netip.Addr
	// Subnet is where peers and their endpoints must be (CL-2). The zero prefix
	// switches the check off.
	Subnet netip.Prefix
	Group  netip.Addr // multicast group of the network
	Port   uint16     // of the group and of every peer

	InitialDelayMin, InitialDelayMax time.Duration // random wait before the first Offer or Find
	RepetitionsBaseDelay             time.Duration // gap after the first, doubled for each further one
	RepetitionsMax                   int           // repetitions, 0 to 10
	CyclicOfferDelay                 time.Duration // gap between offers in the main phase

	// RequestResponseDelayMin and Max bound the random wait before the answer to
	// a Find that came by multicast (SV-4).
	RequestResponseDelayMin, RequestResponseDelayMax time.Duration
	// MulticastAnswers answers a Find by multicast if the last multicast offer is half
	// a cycle old or older, so that all who look for it hear it (SV-4).
	MulticastAnswers bool
	// SubscribeDelayMin and Max bound the random wait before Subscribes that a
	// multicast Offer triggered (9.1).
	SubscribeDelayMin, SubscribeDelayMax time.Duration

	TTL          uint32 // of our offers and finds in seconds, 1 to TTLForever
	SubscribeTTL uint32 // of our subscriptions; must exceed the peers' offer cycle (SUB-2)
	// TTLFactor stretches the lifetimes that peers give, for networks that lose
	// messages. 1 is by the letter.
	TTLFactor int
	// SubscriptionTTLFactor is that of subscriptions to our eventgroups. 0: TTLFactor.
	SubscriptionTTLFactor int
	// OfferTTLFactors and SubscriptionTTLFactors replace both for single instances.
	OfferTTLFactors, SubscriptionTTLFactors []TTLFactor

	// AcceptMinor decides whether an offer of a minor version is taken; nil: each is
	// (CL-7). It must not call the Machine.
	AcceptMinor func(key someip.InstanceKey, minor uint32) bool

	// AnySourcePort accepts messages from ports other than Port (case 73).
	AnySourcePort bool
	// AllowOwnAddress accepts peers and endpoints at our own address: another
	// stack shares it, with another SD port, and AnySourcePort is set.
	AllowOwnAddress bool
	// InitialDataControl announces explicit initial data control: with peers
	// that do too, only the flag in a Subscribe asks for initial events (SUB-7).
	InitialDataControl bool

	// ConnectGrace is how long a Subscribe that names a TCP connection waits for
	// it to be accepted before it is refused: discovery may overtake it.
	ConnectGrace time.Duration
	// AckGrace is how long after a Subscribe a multicast Offer does not count its
	// Ack as missing (SUB-6): it may be on its way, and asking again would bring the
	// initial events twice.
	AckGrace time.Duration
	// DuplicateWindow is how long an identical copy of a message counts as a
	// duplicate of the network and not as a restart of its sender (RB-7).
	DuplicateWindow time.Duration

	// MaxPayload is the longest SD payload sent, in bytes (SV-1).
	MaxPayload int
	Limits     Limits
}

// Limits bound what peers can make a Machine remember. What exceeds them is
// refused and counted.
type Limits struct {
	Peers                  int // hosts whose sessions are followed
	Offers                 int // offers of all peers together
	OffersPerPeer          int
	Subscribers            int // subscriptions to our eventgroups, all together
	SubscribersPerPeer     int
	SubscribersPerGroup    int // of one peer to one eventgroup, by counter or endpoint
	NacksPerSecond         int // sent to one peer
	EntriesPerSecond       int // of one peer
	AnswersPerSecond       int // to Finds of one peer for one instance
	RenewalsPerSecond      int // of one of our subscriptions, by offers
	ReturnsPerSecond       int // of one instance that a peer withdraws and offers again
	AcceptedTCPConnections int // reported by Accepted and remembered
}

// DefaultConfig returns what the gateway uses unless told otherwise. Address
// remains to be set, and Subnet should be.
func DefaultConfig() Config {
	return Config{
		Group: netip.AddrFrom4([4]byte{224, 244, 224, 245}), Port: 30490,
		InitialDelayMin: 10 * time.Millisecond, InitialDelayMax: 100 * time.Millisecond,
		RepetitionsBaseDelay: 100 * time.Millisecond, RepetitionsMax: 3,
		CyclicOfferDelay:        time.Second,
		RequestResponseDelayMin: 10 * time.Millisecond, RequestResponseDelayMax: 50 * time.Millisecond,
		TTL: 3, SubscribeTTL: 5, TTLFactor: 1,
		ConnectGrace: 100 * time.Millisecond, AckGrace: 100 * time.Millisecond,
		DuplicateWindow: 50 * time.Millisecond,
		MaxPayload:      1380,
		Limits: Limits{
			Peers: 1024, Offers: 16384, OffersPerPeer: 8192,
			Subscribers: 16384, SubscribersPerPeer: 8192, SubscribersPerGroup: 16,
			NacksPerSecond: 200, EntriesPerSecond: 32768, AnswersPerSecond: 50, RenewalsPerSecond: 20, ReturnsPerSecond: 10,
			AcceptedTCPConnections: 4096,
		},
	}
}

const (
	minPayload     = fixedSize + 2*entrySize + 0x200 // a Stop/Subscribe pair with options
	maxPayload     = someip.MaxUDPPayload
	maxRepetitions = 10
)

// Validate returns an ErrConfig that names the first value that cannot be used.
func (c *Config) Validate() error {
	delays := func(least, most time.Duration) bool { return least >= 0 && least <= most }
	for _, check := range []struct {
		ok   bool
		what string
	}{
		{usableAddr(c.Address) && !c.Address.IsMulticast(), "own address must be a unicast address"},
		{!c.Subnet.IsValid() || c.Subnet.Contains(normalAddr(c.Address)), "own address must be in the subnet"},
		// Any multicast address will do, not only those from 224 on (case 80).
		{c.Group.IsMulticast(), "group must be a multicast address"},
		{c.Group.Is4() == c.Address.Is4(), "group and own address must be of one family"},
		{c.Port != 0, "port must not be 0"},
		{delays(c.InitialDelayMin, c.InitialDelayMax), "initial delay: 0 <= min <= max"},
		{delays(c.RepetitionsBaseDelay, time.Minute), "repetitions base delay must be 0 to 1 minute"},
		{c.RepetitionsMax >= 0 && c.RepetitionsMax <= maxRepetitions, "repetitions max must be 0 to 10"},
		{c.CyclicOfferDelay >= time.Millisecond, "cyclic offer delay must be 1 ms or more"},
		{delays(c.RequestResponseDelayMin, c.RequestResponseDelayMax), "request response delay: 0 <= min <= max"},
		{delays(c.SubscribeDelayMin, c.SubscribeDelayMax), "subscribe delay: 0 <= min <= max"},
		// TTL 0 would withdraw what it is meant to offer (case 50).
		{c.TTL >= 1 && c.TTL <= maxTTL, "TTL must be 1 to 0xffffff seconds"},
		{c.SubscribeTTL >= 1 && c.SubscribeTTL <= maxTTL, "subscribe TTL must be 1 to 0xffffff seconds"},
		{c.TTLFactor >= 1 && c.TTLFactor <= 100, "TTL factor must be 1 to 100"},
		{c.SubscriptionTTLFactor >= 0 && c.SubscriptionTTLFactor <= 100, "subscription TTL factor must be 1 to 100"},
		{validFactors(c.OfferTTLFactors) && validFactors(c.SubscriptionTTLFactors), "TTL factor of an instance must be 1 to 100"},
		{min(c.ConnectGrace, c.AckGrace, c.DuplicateWindow) >= 0, "times must not be negative"},
		{c.MaxPayload >= minPayload && c.MaxPayload <= maxPayload, "payload limit must be 556 to 1400 bytes"},
		{c.Limits.positive(), "every limit must be 1 or more"},
	} {
		if !check.ok {
			return fmt.Errorf("%w: %s", ErrConfig, check.what)
		}
	}
	return nil
}

func (l Limits) positive() bool {
	return min(l.Peers, l.Offers, l.OffersPerPeer, l.Subscribers, l.SubscribersPerPeer,
		l.SubscribersPerGroup, l.NacksPerSecond, l.EntriesPerSecond, l.AnswersPerSecond, l.RenewalsPerSecond,
		l.ReturnsPerSecond, l.AcceptedTCPConnections) >= 1
}

func usableAddr(a netip.Addr) bool { return a.IsValid() && !a.IsUnspecified() }
