// Echo offers the SOME/IP service 0x6001.0x0001, which returns what it is sent,
// and calls 0x6001.0x0002, which somebody else on the network offers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/netip"

	"carisma.dev/gateway/someip/runtime"
)

func main() {
	address := flag.String("address", "10.77.1.9/24", "own address on the network")
	flag.Parse()
	stack, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
		Name: "body", Address: netip.MustParsePrefix(*address), ClientIDs: runtime.Range{First: 0x1500, Last: 0x150f},
	}}})
	check(err)
	body := stack.Network("body")
	_, err = body.Offer(runtime.ServiceConfig{
		Service: 0x6001, Instance: 1, Major: 1, UDPPort: 30600,
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) { check(r.Respond(r.Payload)) }),
	})
	check(err)
	client, err := body.Client(runtime.InstanceKey{Service: 0x6001, Instance: 2, Major: 1})
	check(err)
	check(client.Await(context.Background()))
	response, err := client.Call(context.Background(), 1, false, []byte("hello"))
	check(err)
	fmt.Printf("%s, return code %v\n", response.Payload, response.Code)
	select {} // goes on offering
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
