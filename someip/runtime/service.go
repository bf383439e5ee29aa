package runtime

import "net/netip"

// ServiceConfig describes a service instance to offer.
type ServiceConfig struct {
	Service, Instance uint16
	Major             uint8
	Minor             uint32
	// UDPPort and TCPPort are where it is offered; 0: not over that transport;
	// [AutoPort]: a free one. Services may share a port, two instances of one
	// service may not (UDP-5).
	UDPPort, TCPPort uint16
	Events           []EventConfig
	// Eventgroups are those of the groups that Events name whose events may go by
	// multicast.
	Eventgroups []EventgroupConfig
	// Unannounced keeps the offer from service discovery: clients know of it
	// otherwise (SUB-15). Nobody can subscribe then; TCP events go to every
	// connection.
	Unannounced bool
	// Subscribers get events whether they subscribed or not.
	Subscribers []StaticSubscriber
	// Methods are those that exist; others are answered E_UNKNOWN_METHOD.
	// Nil: the handler gets every request and decides.
	Methods []MethodConfig
	// Handler serves the requests; nil answers each E_UNKNOWN_METHOD.
	Handler Handler
	// OnConflict, if set, hears that another host offers the instance as well:
	// once for each such host while that lasts. Its offer is ignored for as long as
	// ours stands; which of the two gives way is the application's decision. It
	// must not block, and must not stop the offering by itself.
	OnConflict func(peer netip.AddrPort)
	// IgnoreConflict, if set, decides by the configuration items of the other host's
	// offer that ours stands, and OnConflict does not hear of it. It must not block
	// nor call the stack.
	IgnoreConflict func(configuration []string) bool
	// Configuration items, "key=value" each, go with the offer.
	Configuration []string
	// LoadBalancing ranks the instance among those of its service, if not nil.
	LoadBalancing *LoadBalancing
	// Groups, if set, decides which eventgroups there are, in place of Events: for
	// an instance whose events are not known beforehand. Its events are sent by
	// [Offering.NotifyGroup].
	Groups GroupHandler
	// OnSubscribers, if set, hears to how many endpoints an event goes, whenever
	// that may have changed. It must not block.
	OnSubscribers func(event uint16, endpoints int)
}

// EventConfig describes an event or the notifier of a field.
type EventConfig struct {
	ID          uint16
	Reliable    bool     // sent over TCP
	Eventgroups []uint16 // the groups that contain it
	// Field makes it a notifier: a new subscriber gets the last value at once.
	Field bool
}

// EventgroupConfig says how UDP events of an eventgroup reach many clients at once
// (2.2). The initial value of a field always goes by unicast (case 94).
type EventgroupConfig struct {
	ID uint16
	// Multicast is the group and port that the events go to once Threshold
	// subscribers are there, or one that has no endpoint of its own. Clients learn
	// of it when they subscribe.
	Multicast netip.AddrPort
	// Threshold is the number of subscribers from which on multicast is used:
	// 0 never, 1 always.
	Threshold int
}

// MethodConfig describes a method.
type MethodConfig struct {
	ID            uint16
	FireAndForget bool // takes REQUEST_NO_RETURN only; others take REQUEST only
}
