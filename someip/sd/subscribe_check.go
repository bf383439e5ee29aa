package sd

import (
	"net/netip"
	"time"
)

// checkSubscribe decides whether a Subscribe can be served (SUB-9), and returns
// the subscriber's endpoints that the eventgroup uses.
func (m *Machine) checkSubscribe(now time.Time, p *peer, o *ownOffer, e *Entry) (at Endpoints, ok bool) {
	given, ok := m.entryEndpoints(now, p, e)
	if !ok || o == nil { // unknown service, instance or major (case 89)
		return at, false
	}
	if o.spec.AnyEventgroup {
		return o.checkAny(e.Eventgroup, given)
	}
	g := o.eventgroup(e.Eventgroup)
	if g == nil {
		return at, false
	}
	// What the eventgroup does not use is redundant and ignored (case 88).
	if g.UDP {
		if !given.UDP.IsValid() && !g.Multicast.IsValid() {
			return at, false
		}
		at.UDP = given.UDP
	}
	if g.TCP {
		if !given.TCP.IsValid() {
			return at, false
		}
		at.TCP = given.TCP
	}
	return at, true
}

// checkAny takes what endpoints there are: which of them events go to is for the
// owner to know.
func (o *ownOffer) checkAny(eventgroup uint16, given Endpoints) (at Endpoints, ok bool) {
	if eventgroup == 0 || eventgroup == 0xFFFF {
		return at, false
	}
	if o.spec.Endpoints.UDP.IsValid() {
		at.UDP = given.UDP
	}
	if o.spec.Endpoints.TCP.IsValid() {
		at.TCP = given.TCP
	}
	return at, at != (Endpoints{})
}

// entryEndpoints collects the endpoints that an entry refers to: at most one for
// each protocol, each plausible. Options that do not belong to the entry, are of
// unknown type or of the other address family are ignored; contradictions and
// implausible endpoints invalidate the entry (7.4), which is counted.
func (m *Machine) entryEndpoints(now time.Time, p *peer, e *Entry) (at Endpoints, ok bool) {
	first, second, ok := m.in.Runs(e)
	if !ok {
		m.stats.BadEntries++
		return at, false
	}
	for _, run := range [2][]Option{first, second} {
		for i := range run {
			o := &run[i]
			addr := normal(o.Endpoint)
			if !o.IsEndpoint() || addr.Addr().Is4() != m.own.Addr().Is4() {
				continue
			}
			slot := &at.UDP
			switch o.Proto {
			case UDP:
			case TCP:
				slot = &at.TCP
			default:
				m.stats.BadEntries++
				return Endpoints{}, false
			}
			if slot.IsValid() && *slot != addr {
				m.stats.BadEntries++
				return Endpoints{}, false
			}
			if !m.plausible(addr) {
				if addr.Addr() == m.own.Addr() && !m.cfg.AllowOwnAddress {
					m.claimed(now, &p.claimed, p.at, addr, e.Key())
				}
				return Endpoints{}, false
			}
			*slot = addr
		}
	}
	return at, true
}

// plausible reports whether a peer can be reached at an address (CL-2), and
// counts why not.
func (m *Machine) plausible(at netip.AddrPort) bool {
	addr := at.Addr()
	switch {
	case addr == m.own.Addr() && !m.cfg.AllowOwnAddress:
		m.stats.OwnEndpoint++
		return false
	case at.Port() == 0, !usableAddr(addr), addr.IsMulticast(), addr == broadcast,
		addr.IsLoopback() && !m.own.Addr().IsLoopback(), !m.inSubnet(addr):
		m.stats.BadEndpoint++
		return false
	}
	return true
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// inSubnet applies the subnet of this network, no other (case 77). Link-local
// IPv6 addresses are on the link whatever the prefix.
func (m *Machine) inSubnet(addr netip.Addr) bool {
	return !m.cfg.Subnet.IsValid() || m.cfg.Subnet.Contains(addr) || addr.Is6() && addr.IsLinkLocalUnicast()
}
