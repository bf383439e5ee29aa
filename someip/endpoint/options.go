package endpoint

import (
	"fmt"
	"net/netip"
)

// Marking says how a socket marks what it sends.
type Marking struct {
	// DSCP is the differentiated services code point, 0 to 63: the upper six bits
	// of IP_TOS or IPV6_TCLASS.
	DSCP uint8
	// Priority is the SO_PRIORITY of the socket, which a VLAN device maps to the
	// priority of the tag (its egress map). 0 leaves what the DSCP implies. Above
	// 6 the kernel wants CAP_NET_ADMIN.
	Priority int
}

const maxDSCP = 63

func (m Marking) validate() error {
	if m.DSCP > maxDSCP {
		return fmt.Errorf("endpoint: DSCP %d is above %d", m.DSCP, maxDSCP)
	}
	return nil
}

// PortRange is a closed interval of ports; the zero PortRange is empty.
type PortRange struct{ First, Last uint16 }

// bind calls open for the ports of local until one is free: that of local if it
// has one, else those of the range, else 0, which lets the system choose. It
// returns what the error of open means.
func (r PortRange) bind(network string, local netip.AddrPort, open func(netip.AddrPort) error) error {
	if local.Port() != 0 || r == (PortRange{}) {
		return bindError(network, local, open(local))
	}
	if r.First == 0 || r.Last < r.First {
		return fmt.Errorf("endpoint: ports %d-%d are no range", r.First, r.Last)
	}
	var last netip.AddrPort
	var err error
	for port := int(r.First); port <= int(r.Last); port++ {
		last = netip.AddrPortFrom(local.Addr(), uint16(port))
		if err = open(last); err == nil || !isInUse(err) {
			return bindError(network, last, err)
		}
	}
	return fmt.Errorf("endpoint: no free port in %d-%d, the last: %w", r.First, r.Last, bindError(network, last, err))
}

// filter passes the senders of some subnets; the empty filter passes all.
type filter []netip.Prefix

func (f filter) passes(from netip.Addr) bool {
	if len(f) == 0 {
		return true
	}
	from = from.WithZone("") // a prefix has none
	for _, p := range f {
		if p.Contains(from) {
			return true
		}
	}
	return false
}
