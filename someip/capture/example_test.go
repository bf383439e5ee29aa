package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"carisma.dev/gateway/someip/capture"
)

// small is a pcap file of one frame.
var small = func() []byte {
	t := &testing.T{}
	return pcap(t, layers.LinkTypeEthernet, udp(t, client, server, request(3).Append(nil)))
}()

func Example() {
	file := bytes.NewReader(small) // os.Open, more often
	r, err := capture.NewReader(file, capture.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v: %v %04x.%04x, %d bytes\n", rec, rec.Message.Type, rec.Message.Service, rec.Message.Method, len(rec.Message.Payload))
	}
	// Output:
	// frame 1, byte 0, udp 10.0.0.1:40000 > 10.0.0.2:30509: REQUEST 1234.0421, 3 bytes
}
