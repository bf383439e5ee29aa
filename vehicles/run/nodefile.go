package run

import (
	"net/netip"
	"path/filepath"
	"strings"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
)

// controlPlanePort is where the control plane of a simulated vehicle listens, at
// the central HPC's address on the backbone.
const controlPlanePort = 15010

// renderNode writes the node.yaml of an HPC as the vehicle implies it, with
// addresses as the simulated hosts have them.
func (r *Runner) renderNode(h *vehicles.Host) ([]byte, error) {
	node := new(config.Node)
	config.Defaults(node)
	node.Name, node.Role = h.Name, h.Role
	node.Address = r.addr(h, r.vehicle.Backbone().Name)
	node.Egress.Address = r.egressAddr(h)
	node.ControlPlane = r.controlPlane()
	node.State = r.State(h.Name)
	for _, p := range r.vehicle.Interfaces {
		abs, err := filepath.Abs(filepath.Join(r.vehicle.Dir, p))
		if err != nil {
			return nil, err
		}
		node.Interfaces = append(node.Interfaces, abs)
	}
	if h.Node != nil {
		for i := range h.Node.Networks {
			node.Networks = append(node.Networks, r.network(h, &h.Node.Networks[i]))
		}
		for _, s := range h.Node.Services {
			s.Address = r.mapAddress(s.Address)
			node.Services = append(node.Services, s)
		}
	}
	return config.Encode(node)
}

func (r *Runner) network(h *vehicles.Host, n *vehicles.NodeNetwork) config.Network {
	shared := r.vehicle.Network(n.Name)
	network := config.Network{
		Name:      n.Name,
		Address:   netip.PrefixFrom(r.addr(h, n.Name), shared.Subnet.Bits()),
		SD:        *shared.SD,
		ClientIDs: n.ClientIDs,
		Ports:     n.Ports,
		Expose:    n.Expose,
	}
	if r.options.Namespaces {
		network.Interface = hosts.DeviceName(n.Name)
	}
	return network
}

// mapAddress maps the host of a host:port; a unix: address stays.
func (r *Runner) mapAddress(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return netip.AddrPortFrom(r.mapAddr(ap.Addr()), ap.Port()).String()
}

func (r *Runner) mapAddr(a netip.Addr) netip.Addr {
	if r.options.Namespaces {
		return a
	}
	return hosts.LoopbackAddr(a)
}
