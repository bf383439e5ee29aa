package stackbench

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// offers is how many instances there are where there are many.
const offers = 1000

// Burst is what many offers at once take.
type Burst struct {
	Milliseconds float64 `json:"ms"` // to parse and take up all of them
	Bytes        float64 `json:"bytes_each"`
	OwnBytes     float64 `json:"own_bytes_each"` // of an instance that is offered by us
}

// burst measures the state machine of service discovery, without sockets: the fastest of
// some runs, as other processes only ever add to it.
func burst() (b Burst, err error) {
	now := time.Unix(1000, 0)
	machine := func(own netip.Addr) (*sd.Machine, error) {
		c := sd.DefaultConfig()
		c.Address, c.Subnet, c.Group, c.Port = own, subnet, group, sdPort
		return sd.New(c, rand.New(rand.NewPCG(1, 1)))
	}
	before := heap()
	peer, err := machine(serverAddr)
	if err != nil {
		return b, err
	}
	for i := range uint16(offers) {
		if _, err := peer.Offer(now, sd.OfferSpec{
			Key:         someip.InstanceKey{Service: 0x1000 + i, Instance: 1, Major: 1},
			Endpoints:   sd.Endpoints{UDP: netip.AddrPortFrom(serverAddr, 30600)},
			Eventgroups: []sd.Eventgroup{{ID: 1, UDP: true}},
		}); err != nil {
			return b, err
		}
	}
	b.OwnBytes = float64(heap()-before) / offers
	var messages [][]byte
	for entries := 0; entries < offers; { // the delays are random, so they leave in groups
		at, _ := peer.Next()
		for _, a := range peer.Tick(at) {
			if s, ok := a.(sd.Send); ok {
				m, _, err := sd.Parse(s.Data)
				if err != nil {
					return b, err
				}
				entries += len(m.Entries)
				messages = append(messages, s.Data)
			}
		}
	}
	for range 5 {
		before := heap()
		m, err := machine(clientAddr)
		if err != nil {
			return b, err
		}
		began := time.Now()
		for _, data := range messages {
			m.Receive(now, netip.AddrPortFrom(serverAddr, sdPort), true, data)
		}
		if took := milliseconds(time.Since(began)); b.Milliseconds == 0 || took < b.Milliseconds {
			b.Milliseconds = took
		}
		b.Bytes = float64(heap()-before) / offers
		runtime.KeepAlive(m)
	}
	return b, nil
}

// heap returns the bytes in use.
func heap() int64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
