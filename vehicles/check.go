package vehicles

import (
	"net/netip"

	"carisma.dev/gateway/mesh/config"
)

var _ config.Checker = (*Vehicle)(nil)

// CheckConfig finds what only the whole file shows: names that refer to nothing
// or stand twice, addresses outside their network, nodes without a central one.
func (v *Vehicle) CheckConfig(at config.Value) {
	v.checkNetworks(at.At("networks"))
	v.checkHosts(at.At("hosts"))
	v.checkComponents(at.At("components"))
}

func (v *Vehicle) checkNetworks(at config.Value) {
	seen := map[string]bool{}
	for i, n := range v.Networks {
		if seen[n.Name] {
			at.Index(i).At("name").Fail("a name of its own for each network", "%q is the name of another network", n.Name)
		}
		seen[n.Name] = true
		if n.Subnet.IsValid() && n.Subnet != n.Subnet.Masked() {
			at.Index(i).At("subnet").Fail(n.Subnet.Masked().String(), "%s has bits set behind its prefix", n.Subnet)
		}
	}
}

func (v *Vehicle) checkHosts(at config.Value) {
	seen := map[string]bool{}
	addresses := map[netip.Addr]string{}
	central := 0
	for i := range v.Hosts {
		h := &v.Hosts[i]
		here := at.Index(i)
		if seen[h.Name] {
			here.At("name").Fail("a name of its own for each host", "%q is the name of another host", h.Name)
		}
		seen[h.Name] = true
		known := v.checkAddresses(h, here.At("addresses"), addresses)
		if h.Role == config.Central {
			central++
		}
		if h.Role == "" {
			if _, given := here.Key("role"); h.Node != nil && !given {
				here.At("node").Fail("a role of the host, or no node", "the host %q has no role, so it has no node", h.Name)
			}
			continue
		}
		if _, on := h.Addresses[v.backboneName()]; !on && known {
			here.At("addresses").Fail("an address on "+v.backboneName(), "the HPC %q is not on the first network, which joins the HPCs", h.Name)
		}
		v.checkNode(h, here.At("node"))
	}
	v.checkClientIDs(at)
	if central != 1 {
		at.Fail("one host with role central", "%d hosts are central", central)
	}
}

func (v *Vehicle) backboneName() string {
	if len(v.Networks) == 0 {
		return ""
	}
	return v.Networks[0].Name
}

// checkAddresses reports whether all networks of the addresses are known.
func (v *Vehicle) checkAddresses(h *Host, at config.Value, seen map[netip.Addr]string) (known bool) {
	known = true
	for name, addr := range h.Addresses {
		n := v.Network(name)
		if n == nil {
			at.At(name).Fail("the name of a network", "there is no network %q", name)
			known = false
			continue
		}
		if n.Subnet.IsValid() && !n.Subnet.Contains(addr) {
			at.At(name).Fail("an address in "+n.Subnet.String(), "%s is not in the network %q", addr, name)
		}
		if other, taken := seen[addr]; taken {
			at.At(name).Fail("an address of its own for each host", "%s is the address of %q", addr, other)
		}
		seen[addr] = h.Name
	}
	return known
}

func (v *Vehicle) checkNode(h *Host, at config.Value) {
	if h.Node == nil {
		return
	}
	for i, n := range h.Node.Networks {
		here := at.At("networks").Index(i).At("name")
		network := v.Network(n.Name)
		switch _, on := h.Addresses[n.Name]; {
		case network == nil:
			here.Fail("the name of a network", "there is no network %q", n.Name)
		case !on:
			here.Fail("a network of the host", "the host %q has no address on the network %q", h.Name, n.Name)
		case network.SD == nil:
			here.Fail("a network with sd", "the network %q has no service discovery", n.Name)
		}
		if n.Expose == nil {
			continue
		}
		for j, r := range n.Expose.SOMEIP {
			if r.Network == n.Name || v.Network(r.Network) == nil {
				at.At("networks").Index(i).At("expose").At("someip").Index(j).At("network").
					Fail("the name of another network", "services of network %q cannot be offered on %q", r.Network, n.Name)
			}
		}
	}
}

// checkClientIDs wants the blocks of all gateways apart: a server that two clients
// with one id use may answer the wrong one (SES-4).
func (v *Vehicle) checkClientIDs(at config.Value) {
	type block struct {
		host string
		ids  config.Range[uint16]
	}
	var seen []block
	for i := range v.Hosts {
		h := &v.Hosts[i]
		if h.Node == nil {
			continue
		}
		for j, n := range h.Node.Networks {
			for _, other := range seen {
				if n.ClientIDs.Overlaps(other.ids) {
					at.Index(i).At("node").At("networks").Index(j).At("client_ids").Fail("a block that no other gateway has",
						"%s overlaps with %s of %q", n.ClientIDs, other.ids, other.host)
				}
			}
			seen = append(seen, block{h.Name, n.ClientIDs})
		}
	}
}

func (v *Vehicle) checkComponents(at config.Value) {
	seen := map[string]bool{}
	for i := range v.Components {
		c := &v.Components[i]
		here := at.Index(i)
		if seen[c.Name] {
			here.At("name").Fail("a name of its own for each component", "%q is the name of another component", c.Name)
		}
		seen[c.Name] = true
		h := v.Host(c.Host)
		if h == nil {
			here.At("host").Fail("the name of a host", "there is no host %q", c.Host)
			continue
		}
		if len(c.Command) == 0 {
			here.At("command").Fail("a program and its arguments", "the command is empty")
		}
		for name, command := range c.Peers {
			if len(command) == 0 {
				here.At("peers").At(name).Fail("a program and its arguments", "the command is empty")
			}
		}
		if c.Network == "" {
			continue
		}
		if _, on := h.Addresses[c.Network]; !on {
			here.At("network").Fail("a network of the host", "the host %q has no address on a network %q", c.Host, c.Network)
		} else if n := v.Network(c.Network); n == nil || n.SD == nil {
			here.At("network").Fail("a network with sd", "the network %q has no service discovery", c.Network)
		}
	}
}
