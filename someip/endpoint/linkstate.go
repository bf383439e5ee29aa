package endpoint

import "net/netip"

// linkState is what is known of the interfaces of the host.
type linkState struct {
	links map[int]link
}

type link struct {
	name      string
	running   bool // up, with carrier
	loopback  bool
	addresses map[netip.Prefix]bool // those that can be bound
}

// linkChange is one piece of news from the kernel.
type linkChange struct {
	kind     linkChangeKind
	index    int
	name     string       // of linkSet
	running  bool         // of linkSet
	loopback bool         // of linkSet
	addr     netip.Prefix // of addressSet and addressGone
}

type linkChangeKind uint8

const (
	linkNone linkChangeKind = iota
	linkReset
	linkSet
	linkGone
	addressSet
	addressGone
)

// apply takes a change in. News of an address may come before that of its link.
func (s *linkState) apply(c linkChange) {
	if s.links == nil || c.kind == linkReset {
		s.links = make(map[int]link)
	}
	l := s.links[c.index]
	switch c.kind {
	case linkSet:
		l.name, l.running, l.loopback = c.name, c.running, c.loopback
		s.links[c.index] = l
	case linkGone:
		delete(s.links, c.index)
	case addressSet:
		if l.addresses == nil {
			l.addresses = make(map[netip.Prefix]bool)
		}
		l.addresses[c.addr] = true
		s.links[c.index] = l
	case addressGone:
		delete(l.addresses, c.addr)
	default:
	}
}

// presence finds an own address: on the interface of that name, or on any.
func (s *linkState) presence(own netip.Addr, iface string) Presence {
	if zone := own.Zone(); zone != "" {
		own = own.WithZone("")
		if iface == "" {
			iface = zone
		}
	}
	found := Absent
	for _, l := range s.links {
		if iface != "" && iface != l.name || !l.has(own) {
			continue
		}
		if l.running {
			return Up
		}
		found = Down
	}
	return found
}

// has reports whether an address can be bound here: on loopback that is any of its
// subnet, of IPv4.
func (l link) has(own netip.Addr) bool {
	for p := range l.addresses {
		if p.Addr() == own || l.loopback && own.Is4() && p.Contains(own) {
			return true
		}
	}
	return false
}
