package someip_test

import (
	"fmt"

	"carisma.dev/gateway/someip"
)

// A datagram may hold several messages.
func ExampleParseMessage() {
	datagram := someip.NewRequest(0x1234, 0x0421, 1, 0x1343, 1, []byte{1, 2, 3}).Append(nil)
	datagram = someip.NewNotification(0x1234, 0x8001, 1, 7, []byte{42}).Append(datagram)

	for rest := datagram; len(rest) > 0; {
		m, tail, err := someip.ParseMessage(rest)
		if err != nil {
			break // count it, and drop what is left
		}
		fmt.Printf("%v %04x.%04x % x\n", m.Type, m.Service, m.Method, m.Payload)
		rest = tail
	}
	// Output:
	// REQUEST 1234.0421 01 02 03
	// NOTIFICATION 1234.8001 2a
}
