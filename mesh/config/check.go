package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carisma.dev/gateway/codegen/model"
)

var (
	_ Checker = (*Node)(nil)
	_ Checker = (*Network)(nil)
	_ Checker = (*SD)(nil)
	_ Checker = (*Egress)(nil)
	_ Checker = (*Service)(nil)
)

// CheckConfig finds clashes between the parts of a node.
func (n *Node) CheckConfig(v Value) {
	if n.Address.IsValid() && (n.Address.IsUnspecified() || n.Address.IsMulticast()) {
		v.At("address").Fail("a unicast address", "%s is not an address of one node", n.Address)
	}
	n.checkListeners(v)
	networks := v.At("networks")
	for i := range n.Networks {
		for j := range i {
			checkNetworks(networks, n.Networks, j, i)
		}
	}
	n.checkServices(v.At("services"))
}

// checkListeners finds listeners of the node that cannot exist together.
func (n *Node) checkListeners(v Value) {
	type listener struct {
		what string
		at   netip.AddrPort
		v    Value
	}
	listeners := []listener{
		{"the ingress listener", netip.AddrPortFrom(n.Address, n.Ingress.Port), v.At("ingress").At("port")},
		{"the egress listener", netip.AddrPortFrom(n.Egress.Address, n.Egress.Port), v.At("egress").At("port")},
	}
	if n.Role == Central {
		listeners = append(listeners, listener{"the control plane", n.ControlPlane, v.At("control_plane")})
	}
	for i, l := range listeners {
		for _, before := range listeners[:i] {
			if l.at.IsValid() && before.at.Port() == l.at.Port() && sameHost(before.at.Addr(), l.at.Addr()) {
				l.v.Fail("an address and port of its own", "%s is also where %s listens", l.at, before.what)
			}
		}
	}
}

// sameHost reports whether two listeners of these addresses exclude each other.
func sameHost(a, b netip.Addr) bool {
	return a.IsValid() && b.IsValid() && (a == b || a.IsUnspecified() || b.IsUnspecified())
}

func checkNetworks(v Value, all []Network, i, j int) {
	first, second, at := &all[i], &all[j], v.Index(j)
	if second.Name != "" && first.Name == second.Name {
		at.At("name").Fail("a name of its own for each network", "%q is also the name of the network on line %d", second.Name, first.Pos.Line)
	}
	if !second.ClientIDs.IsZero() && !first.ClientIDs.IsZero() && first.ClientIDs.Overlaps(second.ClientIDs) {
		at.At("client_ids").Fail("a block of its own for each network", "0x%04x-0x%04x overlaps client_ids of network %q",
			second.ClientIDs.Min, second.ClientIDs.Max, first.Name)
	}
	if !second.Address.IsValid() || first.Address.Addr() != second.Address.Addr() {
		return
	}
	if first.SD.Port == second.SD.Port {
		at.At("address").Fail("an address, or an SD port, of its own", "%s with SD port %d is also used by network %q",
			second.Address.Addr(), second.SD.Port, first.Name)
	}
	if first.Ports.Overlaps(second.Ports) {
		at.At("ports").Fail("ports of its own for each network with the same address", "%s overlaps ports of network %q", second.Ports, first.Name)
	}
}

func (n *Node) checkServices(v Value) {
	names := map[string]int{}
	for i, s := range n.Services {
		if s.Interface == "" {
			continue
		}
		name := model.MeshName(s.Interface, s.Instance)
		if before, ok := names[name]; ok {
			b := n.Services[before]
			v.Index(i).Fail("an instance name of its own", "%s of %s has the mesh name %s, which %s of %s on line %d has",
				strconv.Quote(s.Instance), s.Interface, name, strconv.Quote(b.Instance), b.Interface, b.Pos.Line)
			continue
		}
		names[name] = i
	}
}

// CheckConfig checks the members of a network against each other.
func (n *Network) CheckConfig(v Value) {
	if a := n.Address; a.IsValid() {
		const allowed = "the node's own address in the subnet, such as 10.0.0.1/24"
		switch {
		case a.Addr().IsUnspecified() || a.Addr().IsMulticast():
			v.At("address").Fail(allowed, "%s is not an address of one node", a.Addr())
		case a.Addr().Is4() && a.Bits() < 31 && a.Bits() > 0 && a.Masked().Addr() == a.Addr():
			v.At("address").Fail(allowed, "%s is the subnet and not an address in it", a)
		}
		if g := n.SD.Group; g.IsValid() && g.Is4() != a.Addr().Is4() {
			v.At("sd").At("group").Fail("a group of the same IP version as the address", "group %s does not go with address %s", g, a.Addr())
		}
	}
	n.checkExpose(v.At("expose").At("someip"))
	n.checkReplicas(v)
	// Peers refuse an offer whose service port is the SD port (interop case 74).
	if n.Ports.Contains(n.SD.Port) {
		v.At("ports").Fail("ports without the SD port", "%s contains the SD port %d", n.Ports, n.SD.Port)
	}
}

// CheckConfig checks the timing of service discovery.
func (s *SD) CheckConfig(v Value) {
	if !s.Group.IsMulticast() {
		v.At("group").Fail("a multicast address, such as 224.244.224.245", "%s is not a multicast group", s.Group)
	}
	ttl := v.At("ttl")
	span := fmt.Sprintf("a whole number of seconds from 1s to %ds; %ds holds until reboot", InfiniteTTL/time.Second, InfiniteTTL/time.Second)
	switch {
	case s.TTL == 0: // interop case 50
		ttl.Fail(span, "a time to live of 0 would withdraw what it offers")
	case s.TTL%time.Second != 0 || s.TTL > InfiniteTTL:
		ttl.Fail(span, "%s cannot be sent", formatDuration(s.TTL))
	case s.CyclicOfferDelay >= s.TTL:
		ttl.Fail("more than cyclic_offer_delay, three times is usual", "offers would expire: they hold %s and are repeated every %s",
			formatDuration(s.TTL), formatDuration(s.CyclicOfferDelay))
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{{"repetitions_base_delay", s.RepetitionsBaseDelay}, {"cyclic_offer_delay", s.CyclicOfferDelay}} {
		if d.value < time.Millisecond {
			v.At(d.key).Fail("1ms or more", "%s would flood the network", formatDuration(d.value))
		}
	}
}

// CheckConfig checks the address of the egress listener.
func (e *Egress) CheckConfig(v Value) {
	if !e.Address.IsLoopback() {
		v.At("address").Fail("a loopback address, such as 127.0.0.1", "%s can be reached from other hosts, which the egress listener must not", e.Address)
	}
}

// CheckConfig checks the address of a service.
func (s *Service) CheckConfig(v Value) {
	const allowed = "address:port, such as 127.0.0.1:50051, or unix: and an absolute path"
	if s.Address == "" {
		return
	}
	if path, ok := strings.CutPrefix(s.Address, "unix:"); ok {
		if !filepath.IsAbs(path) {
			v.At("address").Fail(allowed, "the path %q is not absolute", path)
		}
		return
	}
	a, err := netip.ParseAddrPort(s.Address)
	switch {
	case err != nil:
		v.At("address").Fail(allowed, "%q is neither address:port nor unix:path", s.Address)
	case a.Addr().IsUnspecified() || a.Addr().IsMulticast() || a.Port() == 0:
		v.At("address").Fail(allowed, "%s is not an address to call", a)
	}
}
