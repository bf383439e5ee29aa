package endpoint

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// device is the network interface used for multicast. The zero index leaves
// the choice to the kernel, by own address.
type device struct {
	index int
	name  string
}

// findDevice finds the interface by name, or by the address it has.
func findDevice(name string, own netip.Addr) (device, error) {
	if name != "" {
		ifi, err := net.InterfaceByName(name)
		if err != nil {
			return device{}, fmt.Errorf("endpoint: interface %q: %w", name, err)
		}
		return device{ifi.Index, ifi.Name}, nil
	}
	if own.Is4() {
		return device{}, nil // the kernel finds it, also for any address of 127.0.0.0/8
	}
	ifaces, err := net.Interfaces()
	if err != nil {
		return device{}, fmt.Errorf("endpoint: %w", err)
	}
	for _, ifi := range ifaces {
		if own.Zone() != "" && own.Zone() != ifi.Name {
			continue
		}
		addrs, err := ifi.Addrs()
		if err != nil {
			continue // the interface went away meanwhile
		}
		for _, a := range addrs {
			if ipn, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(ipn.IP); ok && ip.Unmap() == own.WithZone("") {
					return device{ifi.Index, ifi.Name}, nil
				}
			}
		}
	}
	return device{}, &NoAddressError{Addr: own, Err: syscall.EADDRNOTAVAIL}
}
