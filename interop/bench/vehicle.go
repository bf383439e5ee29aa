// Package bench measures the gateway on a vehicle of its own: two HPCs, and a
// network with echo services on our SOME/IP stack and on vsomeip.
package bench

import (
	"net/netip"
	"path/filepath"
	"time"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
)

//go:generate go run ../../codegen/internal/protogen -root ../.. -grpc -I ../../codegen/protos -I interfaces bench/v1/bench.proto

// Names in the vehicle.
const (
	network      = "ecus"
	center       = "center"
	rear         = "rear"
	ownHost      = "own-ecu"
	vsomeipHost  = "vsomeip-ecu"
	clientHost   = "client"
	startingHost = "starting-ecu"
	waitingHost  = "waiting"
)

// Programs that are started when they are needed.
const (
	clientSerial = "client"
	clientLoad   = "client-load"
	clientBurst  = "client-burst"
	starting     = "starting"
)

// plainName is the socket of the native echo.
const plainName = "plain.sock"

// newVehicle describes the vehicle. The native echo of rear listens on a Unix
// socket, as the gateway does, so that both have the same hops. Service discovery
// has the times of the programs on vsomeip, which are in their directory.
func newVehicle(dir, interfaces, programs string) *vehicles.Vehicle {
	socket := filepath.Join(dir, plainName)
	bench := func(name string, args ...string) []string {
		return append([]string{filepath.Join(programs, name)}, args...)
	}
	addr := netip.MustParseAddr
	sd := &config.SD{
		Group: addr("224.244.78.1"), Port: 30490,
		InitialDelay:         config.Range[time.Duration]{Min: 0, Max: 10 * time.Millisecond},
		RepetitionsBaseDelay: 10 * time.Millisecond, RepetitionsMax: 3,
		CyclicOfferDelay: 1000 * time.Millisecond, TTL: 3000 * time.Millisecond,
		RequestResponseDelay: config.Range[time.Duration]{Min: 0, Max: 0},
	}
	return &vehicles.Vehicle{
		Dir: interfaces, Name: "bench", Interfaces: []string{"."},
		Networks: []vehicles.Network{
			{Name: "backbone", Subnet: netip.MustParsePrefix("10.78.0.0/24")},
			{Name: network, Subnet: netip.MustParsePrefix("10.78.1.0/24"), SD: sd},
		},
		Hosts: []vehicles.Host{
			{Name: center, Role: config.Central, Addresses: map[string]netip.Addr{"backbone": addr("10.78.0.1")}},
			{
				Name: rear, Role: config.Satellite,
				Addresses: map[string]netip.Addr{"backbone": addr("10.78.0.2"), network: addr("10.78.1.1")},
				Node: &vehicles.Node{
					Networks: []vehicles.NodeNetwork{{
						Name:      network,
						ClientIDs: config.Range[uint16]{Min: 0x1100, Max: 0x11ff},
						Ports:     config.Range[uint16]{Min: 30700, Max: 30799},
					}},
					Services: []config.Service{{Interface: "bench.v1.Plain", Instance: "default", Address: "unix:" + socket}},
				},
			},
			{Name: ownHost, Addresses: map[string]netip.Addr{network: addr("10.78.1.2")}},
			{Name: vsomeipHost, Addresses: map[string]netip.Addr{network: addr("10.78.1.3")}},
			{Name: clientHost, Addresses: map[string]netip.Addr{network: addr("10.78.1.4")}},
			{Name: startingHost, Addresses: map[string]netip.Addr{network: addr("10.78.1.5")}},
			{Name: waitingHost, Addresses: map[string]netip.Addr{network: addr("10.78.1.6")}},
		},
		Components: []vehicles.Component{
			{Name: "plain", Host: rear, Command: []string{"bench-peer", "grpc", socket}},
			{Name: "own", Host: ownHost, Network: network, Command: []string{"bench-peer", "shared"}},
			{Name: "vsomeip", Host: vsomeipHost, Network: network, Command: bench("bench_service", "--instance", "2")},
			{Name: starting, Host: startingHost, Network: network, Command: bench("bench_service", "--instance", "4"), Manual: true},
			{Name: clientSerial, Host: clientHost, Network: network, Command: bench("bench_client", "--instance", "2"), Manual: true},
			{
				Name: clientLoad, Host: clientHost, Network: network, Manual: true,
				Command: bench("bench_client", "--instance", "2", "--in-flight", "32", "--calls", "30000"),
			},
			{
				Name: clientBurst, Host: clientHost, Network: network, Manual: true,
				Command: bench("bench_client", "--instance", "2", "--burst", "30000"),
			},
		},
	}
}
