// Package stackbench measures the SOME/IP stack, without gateway: against vsomeip and
// against bare sockets, in two network namespaces that a veth pair joins.
package stackbench

import (
	"encoding/binary"
	"time"

	"carisma.dev/gateway/someip/runtime"
)

// The service that is measured. vsomeip's has the same ids.
const (
	Service uint16 = 0x6001
	Echo    uint16 = 0x0001
	Flood   uint16 = 0x0002 // answers, then sends events
	Event   uint16 = 0x8001 // of eventgroup 1
	Field   uint16 = 0x8002 // of eventgroup 2
)

// The instances.
const (
	Own     uint16 = 1 // on our stack
	Vsomeip uint16 = 2
	Shared  uint16 = 3 // on our stack, with messages that share datagrams
)

// Timing sets the service discovery of our stack as that of vsomeip is set.
func Timing(c *runtime.SDConfig) {
	c.InitialDelayMin, c.InitialDelayMax = time.Nanosecond, 10*time.Millisecond
	c.RepetitionsBaseDelay, c.RepetitionsMax = 10*time.Millisecond, 3
	c.CyclicOfferDelay, c.TTL = time.Second, 3*time.Second
	c.RequestResponseMax = -1
}

// SharedDatagrams is the deployment of the instance Shared.
func SharedDatagrams() runtime.Deployment {
	m := runtime.MessageConfig{Collect: true}
	return runtime.Deployment{
		Instance:  key(Shared),
		Requests:  map[uint16]runtime.MessageConfig{Echo: m},
		Responses: map[uint16]runtime.MessageConfig{Echo: m},
		Events:    map[uint16]runtime.MessageConfig{Event: m},
	}
}

func key(instance uint16) runtime.InstanceKey {
	return runtime.InstanceKey{Service: Service, Instance: instance, Major: 1}
}

// FloodRequestSize is the size of a FloodRequest.
const FloodRequestSize = 12

// FloodRequest is the payload of a request of method Flood: how many events of how
// many bytes, and how many a second; 0: as many as one can.
type FloodRequest struct{ Count, Size, Rate uint32 }

func (f FloodRequest) append() []byte {
	b := binary.BigEndian.AppendUint32(nil, f.Count)
	b = binary.BigEndian.AppendUint32(b, f.Size)
	return binary.BigEndian.AppendUint32(b, f.Rate)
}

// ParseFlood returns the request in a payload of FloodRequestSize bytes. A payload
// smaller than a number has the size of one.
func ParseFlood(b []byte) FloodRequest {
	return FloodRequest{
		binary.BigEndian.Uint32(b), max(4, min(1400, binary.BigEndian.Uint32(b[4:]))), binary.BigEndian.Uint32(b[8:]),
	}
}
