package vsomeip

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/codegen/model"
)

// Config is a configuration as far as it says what happens on the network. What is
// not set is zero, unless said otherwise.
type Config struct {
	Unicast netip.Addr
	Netmask int    // length of the subnet's prefix; 0: vsomeip takes 24
	Device  string // network device

	// Diagnosis is the part of the client ids that is the host's, by DiagnosisMask.
	Diagnosis, DiagnosisMask uint16
	Applications             []Application

	Discovery Discovery
	Services  []Service // those of servicegroups, too
	Clients   []Client

	MaxPayloadReliable, MaxPayloadUnreliable uint32        // bytes, 0: the default
	PayloadSizes                             []PayloadSize // for single ports
	// Timings are those of messages whose method has none of its own. Nil: vsomeip's,
	// 2 ms and 5 ms.
	Timings *Timings
	Filters []Filter

	E2E       bool // protection is on
	Protected []Protection

	Selective []netip.Addr // peers with vsomeip's private option

	TCPConnectTime   time.Duration // longest, 0: the default
	TCPRestarts      uint32        // aborted at most, 0: the default
	UDPReceiveBuffer uint32        // bytes, 0: the default
	Shutdown         time.Duration // longest, 0: the default
}

// Application is a client id.
type Application struct {
	Name     string
	ID       uint16
	Sessions bool // session handling is active
}

// Discovery are the parameters of service discovery.
type Discovery struct {
	Enable   bool
	Group    netip.Addr
	Port     uint16
	Protocol string

	InitialDelayMin, InitialDelayMax time.Duration
	RepetitionsBaseDelay             time.Duration
	RepetitionsMax                   uint8
	CyclicOfferDelay                 time.Duration
	RequestResponseDelay             time.Duration
	TTL                              uint32 // seconds
	OfferDebounce, FindDebounce      time.Duration
	// TTLFactors stretch the lifetimes that peers give, by service and instance.
	OfferTTLFactors, SubscriptionTTLFactors []TTLFactor
	MaxRemoteSubscribers                    uint8

	// Set tells which of these the configuration has, by key: zero is a value too.
	Set map[string]bool
}

// TTLFactor stretches the lifetimes of one instance.
type TTLFactor struct {
	Service, Instance uint16
	Factor            uint32
}

// Service is an instance: one that is offered, or that of a peer.
type Service struct {
	Pos               model.Position
	Service, Instance uint16
	// Unicast is where the instance of a peer is, without discovery. The zero Addr:
	// it is offered here.
	Unicast      netip.Addr
	Protocol     string // "other": not SOME/IP
	TCP, UDP     uint16 // ports, 0: not over that protocol
	MagicCookies bool
	Multicast    netip.AddrPort // of all eventgroups that have none

	Events      []Event
	Eventgroups []Eventgroup
	// ServiceToClient and ClientToService are what is segmented, by method or event.
	ServiceToClient, ClientToService []Segmented
	// Requests and Responses are the times that messages may wait for others.
	Requests, Responses map[uint16]Timings
}

// Event is an event, or the notifier of a field.
type Event struct {
	ID          uint16
	Field       bool
	Reliable    bool
	UpdateCycle time.Duration
}

// Eventgroup is an eventgroup.
type Eventgroup struct {
	ID        uint16
	Events    []uint16
	Multicast netip.AddrPort
	Threshold uint8 // subscribers from which on multicast is used; 0: never
}

// Segmented is a method or event with segmentation.
type Segmented struct {
	Method     uint16
	MaxSegment uint16        // bytes, 0: 1392
	Separation time.Duration // least time between segments
}

// Timings say how long a message waits for others to share a datagram.
type Timings struct{ Debounce, Retention time.Duration }

// Client are the own ports towards an instance, or towards the ports of peers.
type Client struct {
	Pos               model.Position
	Service, Instance uint16
	TCP, UDP          []uint16
	// Ranges of own ports, for remote ports within ranges.
	TCPPorts, TCPRemote, UDPPorts, UDPRemote Range
}

// Range is a closed interval; the zero Range is none.
type Range struct{ First, Last uint16 }

// PayloadSize bounds the payload at one port.
type PayloadSize struct {
	Unicast netip.Addr
	Port    uint16
	Max     uint32
}

// Filter drops events on receipt.
type Filter struct {
	Service, Instance uint16
	Events            []EventFilter
}

// EventFilter says which notifications of an event count.
type EventFilter struct {
	Event                uint16
	OnChange             bool
	ChangeResetsInterval bool
	Interval             time.Duration // 0: never
	Ignore               map[int]byte  // bits that count for no change, by the index of their byte
}

// Protection is the end-to-end protection of an event.
type Protection struct {
	Pos            model.Position
	Service, Event uint16
	Profile        string // as written: P01, P04, CRC8, …
	Protector      bool
	Checker        bool
	DataID         uint32
	DataIDMode     uint8
	CRCOffset      uint32 // bits for P04, P05, P07, else bytes
	CounterOffset  uint32
	NibbleOffset   uint32
	DataLength     uint32
	MinDataLength  uint32
	MaxDataLength  uint32
	MaxDelta       uint32
}
