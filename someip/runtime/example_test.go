package runtime_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/tp"
)

// The thermometer of the examples: one method and one field.
var thermometer = runtime.InstanceKey{Service: 0x1001, Instance: 0x0001, Major: 1}

const (
	readTemperature  = 0x0001 // method
	temperature      = 0x8001 // field notifier
	temperatureGroup = 0x0001
)

// vehicleNetwork is one network as a host sees it. The two hosts of an example run
// in one process, so each has a loopback address.
func vehicleNetwork(address string, ids runtime.Range) runtime.Config {
	return runtime.Config{Networks: []runtime.NetworkConfig{{
		Name:    "body",
		Address: netip.MustParsePrefix(address),
		SD: runtime.SDConfig{
			Group: netip.MustParseAddr("239.192.29.1"), Port: 30490,
			InitialDelayMax: -1, // find each other at once
		},
		ClientIDs: ids,
		Ports:     runtime.Range{First: 30501, Last: 30599},
	}}}
}

// startThermometer offers the thermometer from a host of its own.
func startThermometer(address string) (*runtime.Stack, *runtime.Offering) {
	stack, err := runtime.Start(vehicleNetwork(address, runtime.Range{First: 0x1100, Last: 0x11FF}))
	if err != nil {
		log.Fatal(err)
	}
	offering, err := stack.Network("body").Offer(runtime.ServiceConfig{
		Service: thermometer.Service, Instance: thermometer.Instance, Major: thermometer.Major,
		UDPPort: runtime.AutoPort,
		Methods: []runtime.MethodConfig{{ID: readTemperature}},
		Events:  []runtime.EventConfig{{ID: temperature, Eventgroups: []uint16{temperatureGroup}, Field: true}},
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
			_ = r.Respond([]byte{21}) // an error means that the client has gone
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	return stack, offering
}

// waitFor blocks until the instance of a client is available.
func waitFor(ctx context.Context, n *runtime.Network, key runtime.InstanceKey) {
	up := make(chan struct{}, 1)
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = n.Observe(watching, key, func(a runtime.Availability) {
		if a.Up {
			select {
			case up <- struct{}{}:
			default:
			}
		}
	})
	select {
	case <-up:
	case <-ctx.Done():
	}
}

// Offer a service: its methods are answered by a handler, its field is sent to all
// that subscribe.
func ExampleNetwork_Offer() {
	stack, err := runtime.Start(vehicleNetwork("127.29.1.1/24", runtime.Range{First: 0x1100, Last: 0x11FF}))
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close()

	offering, err := stack.Network("body").Offer(runtime.ServiceConfig{
		Service: 0x1001, Instance: 0x0001, Major: 1,
		UDPPort: 30509,
		Methods: []runtime.MethodConfig{{ID: readTemperature}},
		Events:  []runtime.EventConfig{{ID: temperature, Eventgroups: []uint16{temperatureGroup}, Field: true}},
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
			if len(r.Payload) > 0 {
				_ = r.Fail(someip.MalformedMessage, true, nil)
				return
			}
			_ = r.Respond([]byte{21})
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer offering.Stop()

	if err := offering.Notify(temperature, []byte{21}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(offering.Key(), "at", offering.Endpoints().UDP)
	// Output: 1001.0001 v1 at 127.29.1.1:30509
}

// Call a method of a service that another host offers.
func ExampleClient_Call() {
	server, _ := startThermometer("127.29.2.1/24")
	defer server.Close()

	stack, err := runtime.Start(vehicleNetwork("127.29.2.2/24", runtime.Range{First: 0x1200, Last: 0x12FF}))
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close()
	network := stack.Network("body")
	client, err := network.Client(thermometer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	waitFor(ctx, network, thermometer)
	response, err := client.Call(ctx, readTemperature, false, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Code, response.Payload[0], "°C")
	// Output: E_OK 21 °C
}

// Subscribe to a field: its value comes at once, then every change.
func ExampleClient_Subscribe() {
	server, offering := startThermometer("127.29.3.1/24")
	defer server.Close()
	_ = offering.SetField(temperature, []byte{21})

	stack, err := runtime.Start(vehicleNetwork("127.29.3.2/24", runtime.Range{First: 0x1200, Last: 0x12FF}))
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close()
	client, err := stack.Network("body").Client(thermometer)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	values := make(chan byte, 10)
	subscription, err := client.Subscribe(context.Background(), runtime.SubscribeConfig{
		Eventgroup: temperatureGroup,
		Events:     []uint16{temperature},
		OnEvent:    func(n runtime.Notification) { values <- n.Payload[0] },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer subscription.Close()

	fmt.Println("now", <-values)
	_ = offering.Notify(temperature, []byte{22})
	fmt.Println("then", <-values)
	// Output:
	// now 21
	// then 22
}

// Say how messages travel, the same on both sides: here a method whose answers need
// segments, and an event that is protected end to end.
func ExampleNetwork_Deploy() {
	deployment := runtime.Deployment{
		Instance:  thermometer,
		Responses: map[uint16]runtime.MessageConfig{readTemperature: {TP: &tp.Rule{Separation: 100 * time.Microsecond}}},
		Events: map[uint16]runtime.MessageConfig{
			temperature: {E2E: &runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P04, DataID: 0x2D}, Drop: true}},
		},
	}
	stack, err := runtime.Start(vehicleNetwork("127.29.4.1/24", runtime.Range{First: 0x1100, Last: 0x11FF}))
	if err != nil {
		log.Fatal(err)
	}
	defer stack.Close()
	if err := stack.Network("body").Deploy(deployment); err != nil {
		log.Fatal(err)
	}
	fmt.Println("offer it now, or use it")
	// Output: offer it now, or use it
}
