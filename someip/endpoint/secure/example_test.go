package secure_test

import (
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
)

// A UDP port whose peers must have a pre-shared key. The client's side is the same
// with Client in place of Server.
func ExampleDTLS() {
	layer, err := secure.NewDTLS(secure.Config{PSK: &secure.PSK{
		Identity: "tester",
		Keys:     map[string][]byte{"tester": []byte("not a key to use")},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	open := func(local string, protect func(*endpoint.UDP) (endpoint.PacketSocket, error)) endpoint.PacketSocket {
		u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: netip.MustParseAddrPort(local)})
		if err != nil {
			fmt.Println(err)
			return nil
		}
		socket, err := protect(u)
		if err != nil {
			fmt.Println(err)
		}
		return socket
	}
	server := open("127.0.11.65:0", layer.Server)
	defer server.Close()
	server.Serve(func(from netip.AddrPort, b []byte) { _ = server.Send(from, b) })

	client := open("127.0.11.66:0", layer.Client)
	defer client.Close()
	echo := make(chan string, 1)
	client.Serve(func(_ netip.AddrPort, b []byte) { echo <- string(b) })
	if err := client.Send(server.LocalAddr(), []byte("hello")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-echo)
	// Output: hello
}
