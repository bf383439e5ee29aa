// Package someiptest helps to test what uses the SOME/IP stack: networks in memory
// under a fake clock ([Ether]), networks on the loopback interface that do not hear
// each other ([Domain]), and scripted peers ([Peer]).
package someiptest

import (
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"carisma.dev/gateway/someip/runtime"
)

// Domain is a SOME/IP-SD domain of its own on the loopback interface: a multicast
// group, an SD port, and an address for each of 254 hosts.
type Domain struct {
	tb    testing.TB
	part  byte // tells processes apart
	index byte // tells the domains of a process apart
	Group netip.Addr
	Port  uint16
}

var domains atomic.Uint32

// NewDomain returns a domain that nothing else uses.
func NewDomain(tb testing.TB) *Domain {
	tb.Helper()
	d := &Domain{tb: tb, part: byte(64 + os.Getpid()%128), index: byte(domains.Add(1))}
	d.Group = netip.AddrFrom4([4]byte{239, 192, d.part, d.index})
	d.Port = FreePort(tb)
	return d
}

// FreePort returns a UDP port that is free on all addresses.
func FreePort(tb testing.TB) uint16 {
	tb.Helper()
	c, err := net.ListenUDP("udp4", nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
}

// Addr returns the address of a host, 1 to 254.
func (d *Domain) Addr(host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{127, d.part, d.index, host})
}

// AddrPort returns an address of a host; port 0 is for the system to choose.
func (d *Domain) AddrPort(host byte, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(d.Addr(host), port)
}

// SD returns the SD endpoint of a host.
func (d *Domain) SD(host byte) netip.AddrPort { return d.AddrPort(host, d.Port) }

// Config returns the configuration of a host: the network is named "lan", service
// discovery waits for nothing and offers every 150 ms, and times to live are long
// enough for a loaded machine.
func (d *Domain) Config(host byte) runtime.NetworkConfig {
	return runtime.NetworkConfig{
		Name:    "lan",
		Address: netip.PrefixFrom(d.Addr(host), 24),
		SD: runtime.SDConfig{
			Group: d.Group, Port: d.Port,
			InitialDelayMax: -1, RequestResponseMax: -1, RepetitionsMax: -1,
			CyclicOfferDelay: 150 * time.Millisecond,
			TTL:              5 * time.Second, SubscribeTTL: 5 * time.Second,
		},
		ClientIDs: runtime.Range{First: 0x0100 + uint16(host)<<4, Last: 0x010F + uint16(host)<<4},
		Ports:     runtime.Range{First: 31000, Last: 31063},
		// Tests have handlers that never answer.
		DrainTimeout: -1,
	}
}

// ShortLived makes a host notice within a second that another vanished.
func ShortLived(c *runtime.NetworkConfig) { c.SD.TTL, c.SD.SubscribeTTL = time.Second, time.Second }

// Start starts a host, with its configuration changed by alter, until the test ends.
func (d *Domain) Start(host byte, alter ...func(*runtime.NetworkConfig)) *runtime.Network {
	d.tb.Helper()
	return d.StartStack(host, alter...).Network("lan")
}

// StartStack is Start for tests that close the stack themselves.
func (d *Domain) StartStack(host byte, alter ...func(*runtime.NetworkConfig)) *runtime.Stack {
	d.tb.Helper()
	return start(d.tb, d.Config(host), alter)
}

// start starts a stack of one network until the test ends.
func start(tb testing.TB, cfg runtime.NetworkConfig, alter []func(*runtime.NetworkConfig)) *runtime.Stack {
	tb.Helper()
	for _, f := range alter {
		f(&cfg)
	}
	s, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{cfg}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close %v: %v", cfg.Address, err)
		}
	})
	return s
}
