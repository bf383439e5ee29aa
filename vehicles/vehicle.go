// Package vehicles reads vehicle.yaml files: a whole vehicle with its networks,
// hosts and components, to be run on one machine.
package vehicles

import (
	"net/netip"
	"os"
	"path/filepath"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
)

// FileName is the name of the file that describes a vehicle, in its directory.
const FileName = "vehicle.yaml"

// Vehicle is the content of a vehicle.yaml.
type Vehicle struct {
	// Dir is the directory of the file; paths in it are relative to that.
	Dir string `yaml:"-"`

	Name       string      `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the vehicle."`
	Interfaces []string    `yaml:"interfaces" doc:"Interface files (.proto) or directories with them, relative to this file."`
	Scenario   string      `yaml:"scenario" doc:"Scenario to play, relative to this file."`
	Networks   []Network   `yaml:"networks" required:"true" doc:"The networks; the first one joins the HPCs."`
	Hosts      []Host      `yaml:"hosts" required:"true" doc:"HPCs and ECUs."`
	Components []Component `yaml:"components" doc:"Programs that run on the hosts."`
}

// Network is a network of the vehicle.
type Network struct {
	Pos model.Position `yaml:"-"`

	Name   string       `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the network."`
	Subnet netip.Prefix `yaml:"subnet" required:"true" doc:"Addresses of the network." example:"10.77.1.0/24"`
	SD     *config.SD   `yaml:"sd" doc:"SOME/IP service discovery; without it the network has none."`
}

// Host is an HPC, if it has a role, or an ECU.
type Host struct {
	Pos model.Position `yaml:"-"`

	Name      string                `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the host, for an HPC of its node."`
	Role      config.Role           `yaml:"role" doc:"Role of an HPC; an ECU has none."`
	Addresses map[string]netip.Addr `yaml:"addresses" required:"true" doc:"Address on each network, by the network's name."`
	Node      *Node                 `yaml:"node" doc:"What the node of an HPC has beside name, role and addresses."`
}

// Node is the part of a node's configuration that the vehicle does not imply.
type Node struct {
	Networks []NodeNetwork    `yaml:"networks" doc:"SOME/IP networks that the gateway bridges."`
	Services []config.Service `yaml:"services" doc:"Native gRPC services on this node."`
}

// NodeNetwork is a network as one gateway uses it.
type NodeNetwork struct {
	Pos model.Position `yaml:"-"`

	Name      string               `yaml:"name" required:"true" doc:"Name of the network."`
	ClientIDs config.Range[uint16] `yaml:"client_ids" required:"true" min:"0x0001" max:"0xfffe" doc:"Block of SOME/IP client ids, unique in the vehicle." example:"0x1100-0x11ff"`
	Ports     config.Range[uint16] `yaml:"ports" default:"30500-30599" min:"1" doc:"UDP and TCP ports for exposed services."`
	Expose    *config.Expose       `yaml:"expose" doc:"Services of the mesh to offer in the network; without it, every gRPC service that has SOME/IP ids."`
}

// Component is a program on a host.
type Component struct {
	Pos model.Position `yaml:"-"`

	Name    string   `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the component."`
	Host    string   `yaml:"host" required:"true" doc:"Host that it runs on."`
	Network string   `yaml:"network" doc:"SOME/IP network that it speaks on."`
	Command []string `yaml:"command" required:"true" doc:"Program and arguments; the program is looked up beside carisma, in build beside that directory, then in PATH."`
	// Peers are other implementations of the component, by name.
	Peers  map[string][]string `yaml:"peers" doc:"Other implementations of the component, by name."`
	Listen netip.AddrPort      `yaml:"listen" doc:"Where a gRPC service listens."`
	Manual bool                `yaml:"manual" doc:"Not started with the vehicle but by its scenario."`
}

// Load reads and checks the vehicle in a directory. Its error lists every
// mistake with file, line and column, as *config.Error.
func Load(dir string) (*Vehicle, error) {
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := &Vehicle{Dir: dir}
	if err := config.Decode(path, data, v); err != nil {
		return nil, err
	}
	return v, nil
}

// HPCs returns the hosts that are nodes, in the order of the file.
func (v *Vehicle) HPCs() []*Host {
	var hpcs []*Host
	for i := range v.Hosts {
		if v.Hosts[i].Role != "" {
			hpcs = append(hpcs, &v.Hosts[i])
		}
	}
	return hpcs
}

// Central returns the HPC with the control plane.
func (v *Vehicle) Central() *Host {
	for _, h := range v.HPCs() {
		if h.Role == config.Central {
			return h
		}
	}
	return nil
}

// Backbone returns the network that joins the HPCs.
func (v *Vehicle) Backbone() *Network { return &v.Networks[0] }

// Network returns a network by name, nil if there is none.
func (v *Vehicle) Network(name string) *Network {
	for i := range v.Networks {
		if v.Networks[i].Name == name {
			return &v.Networks[i]
		}
	}
	return nil
}

// Host returns a host by name, nil if there is none.
func (v *Vehicle) Host(name string) *Host {
	for i := range v.Hosts {
		if v.Hosts[i].Name == name {
			return &v.Hosts[i]
		}
	}
	return nil
}

// Component returns a component by name, nil if there is none.
func (v *Vehicle) Component(name string) *Component {
	for i := range v.Components {
		if v.Components[i].Name == name {
			return &v.Components[i]
		}
	}
	return nil
}
