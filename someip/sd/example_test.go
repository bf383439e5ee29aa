package sd_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// A server announces an instance, a client looks for it. Two machines are joined
// by hand here; a program has sockets between them, and a timer.
func ExampleMachine() {
	machine := func(address string) *sd.Machine {
		c := sd.DefaultConfig()
		c.Address = netip.MustParseAddr(address)
		c.Subnet = netip.MustParsePrefix("10.0.0.0/24")
		m, err := sd.New(c, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			panic(err)
		}
		return m
	}
	server, client := machine("10.0.0.1"), machine("10.0.0.2")
	now := time.Unix(0, 0)
	key := someip.InstanceKey{Service: 0x1234, Instance: 1, Major: 1}

	if _, err := server.Offer(now, sd.OfferSpec{
		Key: key, Endpoints: sd.Endpoints{UDP: netip.MustParseAddrPort("10.0.0.1:30509")},
	}); err != nil {
		panic(err)
	}
	now, _ = server.Next() // the end of the initial wait
	for _, a := range server.Tick(now) {
		send, ok := a.(sd.Send)
		if !ok {
			continue
		}
		for _, a := range client.Receive(now, netip.MustParseAddrPort("10.0.0.1:30490"), send.Multicast, send.Data) {
			if a, ok := a.(sd.Available); ok {
				fmt.Println("available:", a.Key, a.Endpoints.UDP)
			}
		}
	}
	// Output: available: 1234.0001 v1 10.0.0.1:30509
}

func ExampleParse() {
	datagram := []byte{
		0xff, 0xff, 0x81, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x01, 0x01, 0x01, 0x02, 0x00,
		0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34, 0xff, 0xff,
		0xff, 0x00, 0x00, 0x03, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
	}
	m, _, err := sd.Parse(datagram)
	if err != nil {
		panic(err)
	}
	for i := range m.Entries {
		fmt.Println("session", m.Session, "asks for", m.Entries[i].Key())
	}
	// Output: session 1 asks for 1234.* v*
}
