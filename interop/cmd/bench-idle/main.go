// Bench-idle offers one service with one field and does nothing: what a process costs
// that links nothing but the SOME/IP stack, and how fast it is there. Where it is comes from the variables of a vehicle.
package main

import (
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"carisma.dev/gateway/someip/runtime"
)

func main() {
	address, err := netip.ParsePrefix(os.Getenv("CARISMA_ADDRESS") + "/" + os.Getenv("CARISMA_PREFIX_LEN"))
	check(err)
	group, err := netip.ParseAddr(os.Getenv("CARISMA_SD_GROUP"))
	check(err)
	shortest, longest := time.Nanosecond, 10*time.Millisecond
	if text := os.Getenv("CARISMA_SD_DELAY"); text != "" { // starts are compared
		ms, err := strconv.Atoi(text)
		check(err)
		shortest = time.Duration(ms) * time.Millisecond
		longest = shortest
	}
	stack, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
		Name: "lan", Address: address, Interface: os.Getenv("CARISMA_INTERFACE"),
		SD: runtime.SDConfig{ // as the programs on vsomeip have it
			Group: group, InitialDelayMin: shortest, InitialDelayMax: longest,
			RepetitionsBaseDelay: 10 * time.Millisecond, CyclicOfferDelay: time.Second, RequestResponseMax: -1,
		},
		ClientIDs: runtime.Range{First: 0x1500, Last: 0x1500},
	}}})
	check(err)
	o, err := stack.Network("lan").Offer(runtime.ServiceConfig{
		Service: 0x6001, Instance: 1, Major: 1, UDPPort: 30600,
		Events: []runtime.EventConfig{{ID: 0x8002, Eventgroups: []uint16{2}, Field: true}},
	})
	check(err)
	check(o.SetField(0x8002, make([]byte, 8)))
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
	check(stack.Close())
}

func check(err error) {
	if err != nil {
		_, _ = os.Stderr.WriteString("bench-idle: " + err.Error() + "\n")
		os.Exit(1)
	}
}
