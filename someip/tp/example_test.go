package tp_test

import (
	"fmt"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

func Example() {
	event := someip.NewNotification(0x1234, 0x8001, 1, 1, make([]byte, 3000))
	rule := tp.Rule{Separation: time.Millisecond}
	segments, err := rule.Segment(event)
	if err != nil {
		fmt.Println(err)
		return
	}
	reassembler := tp.NewReassembler(tp.Config{})
	from := tp.Path{From: netip.MustParseAddrPort("10.0.0.1:30509")}
	clock := time.Unix(0, 0)

	var datagram []byte
	for more := true; more; clock = clock.Add(rule.Separation) {
		datagram, more = segments.Append(datagram[:0])
		m, _, err := someip.ParseMessage(datagram)
		if err != nil {
			fmt.Println(err)
			return
		}
		whole, err := reassembler.Receive(clock, from, m)
		fmt.Println(m.Type, len(datagram), "->", len(whole), err)
	}
	// Output:
	// TP_NOTIFICATION 1412 -> 0 <nil>
	// TP_NOTIFICATION 1412 -> 0 <nil>
	// TP_NOTIFICATION 236 -> 3016 <nil>
}
