package matrix

import (
	"net/netip"

	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/tp"
)

// The service that all programs of the matrix offer or use.
const (
	Service  uint16 = 0x6100
	Instance uint16 = 1
	Major    uint8  = 1
	Port     uint16 = 30700 // UDP and TCP
	SDPort   uint16 = 30490
)

// Its methods.
const (
	Echo      uint16 = 0x0001 // answers with the payload
	Refuse    uint16 = 0x0002 // answers with an error of the application
	Tell      uint16 = 0x0003 // fire and forget
	EchoLarge uint16 = 0x0004 // as Echo, segmented over UDP in both directions
	Unknown   uint16 = 0x0099 // does not exist
)

// RefuseCode is the return code of Refuse.
const RefuseCode = 0x21

// MulticastPort is where events of the multicast eventgroup go.
const MulticastPort uint16 = 32344

// Event is an event of the service, alone in its eventgroup.
type Event struct {
	ID, Group  uint16
	TCP, Field bool
	Multicast  bool
	TP         bool
	E2E        *e2e.Config
}

// FieldValue is the value of a field when its server starts.
const FieldValue = "first"

// The events. What is protected has vsomeip's deviations.
var (
	EventUDP  = Event{ID: 0x8001, Group: 1}
	FieldUDP  = Event{ID: 0x8002, Group: 2, Field: true}
	EventTCP  = Event{ID: 0x8003, Group: 3, TCP: true}
	FieldTCP  = Event{ID: 0x8004, Group: 4, TCP: true, Field: true}
	Multicast = Event{ID: 0x8005, Group: 5, Multicast: true}
	EventTP   = Event{ID: 0x8006, Group: 6, TP: true}
	EventP01  = Event{ID: 0x8011, Group: 7, E2E: &e2e.Config{Profile: e2e.P01, DataID: 0xA73, DataIDMode: e2e.Nibble, MaxDelta: 1}}
	EventP04  = Event{ID: 0x8014, Group: 8, E2E: &e2e.Config{Profile: e2e.P04, DataID: 0x2D, MaxDelta: 1}}
	EventP07  = Event{ID: 0x8017, Group: 9, E2E: &e2e.Config{Profile: e2e.P07, DataID: 0x0A0B0C0D, MaxDelta: 1}}
)

// Events are all of them, by eventgroup.
var Events = []Event{EventUDP, FieldUDP, EventTCP, FieldTCP, Multicast, EventTP, EventP01, EventP04, EventP07}

func (e Event) config() runtime.EventConfig {
	return runtime.EventConfig{ID: e.ID, Reliable: e.TCP, Eventgroups: []uint16{e.Group}, Field: e.Field}
}

func (e Event) message() (mc runtime.MessageConfig) {
	if e.TP {
		mc.TP = &tp.Rule{}
	}
	if e.E2E != nil {
		mc.E2E = &runtime.E2EConfig{Config: *e.E2E, Vsomeip: true}
	}
	return mc
}

// deployment is how the messages of the service travel, for both sides.
func deployment(events []Event) runtime.Deployment {
	large := map[uint16]runtime.MessageConfig{EchoLarge: {TP: &tp.Rule{}}}
	d := runtime.Deployment{
		Instance: instance, Requests: large, Responses: large,
		Events: make(map[uint16]runtime.MessageConfig),
	}
	for _, e := range events {
		d.Events[e.ID] = e.message()
	}
	return d
}

var instance = runtime.InstanceKey{Service: Service, Instance: Instance, Major: Major}

// service is the service as our stack offers it.
func service(events []Event, multicast netip.Addr, h runtime.Handler) runtime.ServiceConfig {
	cfg := runtime.ServiceConfig{
		Service: Service, Instance: Instance, Major: Major, UDPPort: Port, TCPPort: Port, Handler: h,
		Methods: []runtime.MethodConfig{{ID: Echo}, {ID: Refuse}, {ID: Tell, FireAndForget: true}, {ID: EchoLarge}},
	}
	for _, e := range events {
		cfg.Events = append(cfg.Events, e.config())
		if e.Multicast {
			cfg.Eventgroups = append(cfg.Eventgroups, runtime.EventgroupConfig{
				ID: e.Group, Multicast: netip.AddrPortFrom(multicast, MulticastPort), Threshold: 1,
			})
		}
	}
	return cfg
}
