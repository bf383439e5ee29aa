package endpoint

import (
	"net"
	"net/netip"
	"strconv"
)

// Canonical makes addresses comparable (case 20). IPv4 is never written as IPv6. A
// link-local IPv6 address has a zone, by name: zone, unless it has one already. Any
// other address has none.
//
// What the sockets of this package report is canonical. An address out of an SD
// option has no zone: give the name of the interface it was received on.
func Canonical(a netip.AddrPort, zone string) netip.AddrPort {
	addr := a.Addr().Unmap()
	switch has := addr.Zone(); {
	case !needsScope(addr):
		if has != "" {
			addr = addr.WithZone("")
		}
	case has == "":
		if zone != "" {
			addr = addr.WithZone(zone)
		}
	default:
		if index, err := strconv.Atoi(has); err == nil {
			addr = addr.WithZone(zoneName(index))
		}
	}
	return netip.AddrPortFrom(addr, a.Port())
}

// needsScope reports whether an address means something on one link only.
func needsScope(a netip.Addr) bool {
	return a.Is6() && (a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast())
}

// zoneName is the name of the interface of that index, or the index where there is
// none.
func zoneName(index int) string {
	if ifi, err := net.InterfaceByIndex(index); err == nil {
		return ifi.Name
	}
	return strconv.Itoa(index)
}

// numbered replaces the name of a zone by its index. Package net remembers indexes
// for a minute, by which time the name may belong to another interface.
func numbered(a netip.AddrPort) netip.AddrPort {
	zone := a.Addr().Zone()
	if zone == "" {
		return a
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return a
	}
	return netip.AddrPortFrom(a.Addr().WithZone(strconv.Itoa(ifi.Index)), a.Port())
}
