// Bench-idle offers one service and does nothing: what a process costs that links
// nothing but the SOME/IP stack. Where it is comes from the variables of a vehicle.
package main

import (
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"carisma.dev/gateway/someip/runtime"
)

func main() {
	address, err := netip.ParsePrefix(os.Getenv("CARISMA_ADDRESS") + "/" + os.Getenv("CARISMA_PREFIX_LEN"))
	check(err)
	group, err := netip.ParseAddr(os.Getenv("CARISMA_SD_GROUP"))
	check(err)
	stack, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
		Name: "lan", Address: address, Interface: os.Getenv("CARISMA_INTERFACE"),
		SD:        runtime.SDConfig{Group: group, CyclicOfferDelay: time.Second},
		ClientIDs: runtime.Range{First: 0x1500, Last: 0x1500},
	}}})
	check(err)
	_, err = stack.Network("lan").Offer(runtime.ServiceConfig{Service: 0x6001, Instance: 1, Major: 1, UDPPort: 30600})
	check(err)
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
