package run

import (
	"net/netip"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
)

// controlPlanePort is where the control plane of a simulated vehicle listens, at
// the central HPC's address on the backbone.
const controlPlanePort = 15010

// nodeFile is a node.yaml as the vehicle implies it. Its keys are those of
// config.Node.
type nodeFile struct {
	Name         string        `yaml:"name"`
	Role         config.Role   `yaml:"role"`
	Address      netip.Addr    `yaml:"address"`
	Egress       egressFile    `yaml:"egress"`
	ControlPlane string        `yaml:"control_plane"`
	State        string        `yaml:"state"`
	Interfaces   []string      `yaml:"interfaces,omitempty"`
	Networks     []networkFile `yaml:"networks,omitempty"`
	Services     []serviceFile `yaml:"services,omitempty"`
}

type egressFile struct {
	Address netip.Addr `yaml:"address"`
}

type networkFile struct {
	Name      string      `yaml:"name"`
	Address   string      `yaml:"address"`
	Interface string      `yaml:"interface,omitempty"`
	SD        sdFile      `yaml:"sd"`
	ClientIDs string      `yaml:"client_ids"`
	Ports     string      `yaml:"ports"`
	Expose    *exposeFile `yaml:"expose,omitempty"`
}

type sdFile struct {
	Group                netip.Addr `yaml:"group"`
	Port                 uint16     `yaml:"port"`
	InitialDelay         string     `yaml:"initial_delay"`
	RepetitionsBaseDelay string     `yaml:"repetitions_base_delay"`
	RepetitionsMax       uint8      `yaml:"repetitions_max"`
	CyclicOfferDelay     string     `yaml:"cyclic_offer_delay"`
	TTL                  string     `yaml:"ttl"`
	RequestResponseDelay string     `yaml:"request_response_delay"`
}

type exposeFile struct {
	Services []exposedFile `yaml:"services"`
}

type exposedFile struct {
	Interface string `yaml:"interface"`
	Instance  string `yaml:"instance,omitempty"`
}

type serviceFile struct {
	Interface string `yaml:"interface"`
	Instance  string `yaml:"instance"`
	Address   string `yaml:"address"`
}

// renderNode writes the node.yaml of an HPC, with addresses as the simulated
// hosts have them.
func (r *Runner) renderNode(h *vehicles.Host) ([]byte, error) {
	backbone := r.addr(h, r.vehicle.Backbone().Name)
	file := nodeFile{
		Name: h.Name, Role: h.Role, Address: backbone,
		Egress:       egressFile{Address: r.egressAddr(h)},
		ControlPlane: r.ControlPlane(),
		State:        r.stateDir(h.Name),
	}
	for _, p := range r.vehicle.Interfaces {
		abs, err := filepath.Abs(filepath.Join(r.vehicle.Dir, p))
		if err != nil {
			return nil, err
		}
		file.Interfaces = append(file.Interfaces, abs)
	}
	if h.Node != nil {
		for i := range h.Node.Networks {
			file.Networks = append(file.Networks, r.renderNetwork(h, &h.Node.Networks[i]))
		}
		for _, s := range h.Node.Services {
			file.Services = append(file.Services, serviceFile{s.Interface, s.Instance, r.mapAddress(s.Address)})
		}
	}
	return yaml.Marshal(file)
}

func (r *Runner) renderNetwork(h *vehicles.Host, n *vehicles.NodeNetwork) networkFile {
	network := r.vehicle.Network(n.Name)
	sd := network.SD
	file := networkFile{
		Name:    n.Name,
		Address: netip.PrefixFrom(r.addr(h, n.Name), network.Subnet.Bits()).String(),
		SD: sdFile{
			Group: sd.Group, Port: sd.Port,
			InitialDelay:         sd.InitialDelay.String(),
			RepetitionsBaseDelay: sd.RepetitionsBaseDelay.String(),
			RepetitionsMax:       sd.RepetitionsMax,
			CyclicOfferDelay:     sd.CyclicOfferDelay.String(),
			TTL:                  sd.TTL.String(),
			RequestResponseDelay: sd.RequestResponseDelay.String(),
		},
		ClientIDs: n.ClientIDs.String(),
		Ports:     n.Ports.String(),
	}
	if r.options.Namespaces {
		file.Interface = hosts.DeviceName(n.Name)
	}
	if n.Expose != nil {
		file.Expose = &exposeFile{Services: []exposedFile{}}
		for _, s := range n.Expose.Services {
			file.Expose.Services = append(file.Expose.Services, exposedFile{s.Interface, s.Instance})
		}
	}
	return file
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
