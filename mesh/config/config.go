// Package config reads the files that say what a node is: a strict YAML decoder
// that names the place of every mistake, and the types of node.yaml.
package config

//go:generate go run ./internal/schemagen ../../docs/schema/node.schema.json

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/codegen/model"
)

// Node is the content of a node.yaml: one High-Performance Computer with its
// gateway, its proxy, its networks and its native services.
type Node struct {
	Pos model.Position `yaml:"-"`

	Name string `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the node, unique in the vehicle." example:"rear"`
	Role Role   `yaml:"role" required:"true" doc:"Whether the control plane runs on this node."`
	// Address is where other nodes reach this one (CAR-7).
	Address netip.Addr `yaml:"address" required:"true" doc:"Address at which the other nodes reach this one."`
	Ingress Ingress    `yaml:"ingress" doc:"Listener for calls that come from other nodes."`
	Egress  Egress     `yaml:"egress" doc:"Listener for calls that leave this node."`
	// ControlPlane is where central listens; satellites dial it.
	ControlPlane netip.AddrPort `yaml:"control_plane" required:"true" doc:"Where the control plane listens."`
	// State is a directory: node id, epoch, store, sockets, files of the proxy.
	State string `yaml:"state" default:"/var/lib/carisma" doc:"Directory for the node id, the store, sockets and the files of the proxy. Relative to this file."`
	// Interfaces are .proto files or import roots. Load makes them absolute.
	Interfaces []string  `yaml:"interfaces" doc:"Interface files (.proto) or directories with them, relative to this file."`
	Networks   []Network `yaml:"networks" doc:"SOME/IP networks of this node."`
	Services   []Service `yaml:"services" doc:"Native gRPC services on this node."`
	Envoy      Envoy     `yaml:"envoy" doc:"The proxy of this node."`
}

// Role says whether the control plane runs on a node.
type Role string

// The roles. A vehicle has one central node, by its files rather than by an
// election (CAR-5).
const (
	Central   Role = "central"
	Satellite Role = "satellite"
)

// Values lists the roles.
func (Role) Values() []string { return []string{string(Central), string(Satellite)} }

// Ingress is the ingress listener of the node's proxy, at the node's address.
type Ingress struct {
	Port uint16 `yaml:"port" default:"15001" min:"1" doc:"TCP port at the node's address."`
}

// Egress is the egress listener of the node's proxy, for programs on this node.
type Egress struct {
	Address netip.Addr `yaml:"address" default:"127.0.0.1" doc:"Local address of the listener."`
	Port    uint16     `yaml:"port" default:"15000" min:"1" doc:"TCP port of the listener."`
	// Socket is a Unix socket with the same function. Load fills in the default,
	// egress.sock in the state directory.
	Socket string `yaml:"socket" doc:"Unix socket of the listener; default egress.sock in the state directory."`
}

// Network is one SOME/IP-SD domain that the node is part of.
type Network struct {
	Pos model.Position `yaml:"-"`

	Name string `yaml:"name" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Name of the network, unique in the vehicle." example:"body"`
	// Address is the node's own address in the network and the subnet's length.
	Address netip.Prefix `yaml:"address" required:"true" doc:"Own address in the network, with the length of the subnet."`
	// Interface is the network device; if empty it is chosen by address.
	Interface string `yaml:"interface" pattern:"[^\\s/]{1,15}" doc:"Network device; without it, the one that has the address." example:"eth0"`
	SD        SD     `yaml:"sd" doc:"Service discovery."`
	// ClientIDs are the SOME/IP client ids that the node may use in the network.
	ClientIDs Range[uint16] `yaml:"client_ids" required:"true" min:"0x0001" max:"0xfffe" doc:"Block of SOME/IP client ids, unique in the vehicle." example:"0x1100-0x11ff"`
	// Ports are for the services that the node exposes.
	Ports  Range[uint16] `yaml:"ports" default:"30500-30599" min:"1" doc:"UDP and TCP ports for exposed services."`
	Expose *Expose       `yaml:"expose" doc:"Services of the mesh to offer in the network; without it, every gRPC service that has SOME/IP ids."`
	// Replicas are instances of the network that are interchangeable.
	Replicas []Replicas `yaml:"replicas" doc:"Instances of the network that are interchangeable: the mesh has them as one, and balances its calls."`
}

// SD configures service discovery in a network.
type SD struct {
	Group                netip.Addr           `yaml:"group" default:"224.244.224.245" doc:"Multicast group."`
	Port                 uint16               `yaml:"port" default:"30490" min:"1" doc:"UDP port."`
	InitialDelay         Range[time.Duration] `yaml:"initial_delay" default:"10ms-100ms" doc:"Range of the random wait before the first message."`
	RepetitionsBaseDelay time.Duration        `yaml:"repetitions_base_delay" default:"100ms" doc:"First gap of the repetition phase; each one after is twice as long."`
	RepetitionsMax       uint8                `yaml:"repetitions_max" default:"3" max:"30" doc:"Messages of the repetition phase; 0 leaves it out."`
	CyclicOfferDelay     time.Duration        `yaml:"cyclic_offer_delay" default:"1s" doc:"Time between two offers in the main phase."`
	// TTL is a whole number of seconds. InfiniteTTL holds until reboot.
	TTL                  time.Duration        `yaml:"ttl" default:"3s" doc:"How long an offer or subscription holds, in whole seconds."`
	RequestResponseDelay Range[time.Duration] `yaml:"request_response_delay" default:"10ms-50ms" doc:"Range of the random wait before the answer to a multicast message."`
}

// InfiniteTTL is the time to live that holds until the next reboot.
const InfiniteTTL = 0xFFFFFF * time.Second

// Service is a native gRPC service on the node.
type Service struct {
	Pos model.Position `yaml:"-"`

	Interface string `yaml:"interface" required:"true" pattern:"([A-Za-z_]\\w*\\.)+v(0|[1-9][0-9]*)\\.[A-Za-z_]\\w*" doc:"Full name of the interface." example:"cabin.trip.v1.TripComputer"`
	Instance  string `yaml:"instance" default:"default" doc:"Name of the instance."`
	Address   string `yaml:"address" required:"true" doc:"Where it listens: address:port, or unix: and an absolute path." example:"127.0.0.1:50051"`
}

// Envoy configures the proxy.
type Envoy struct {
	Path     string   `yaml:"path" default:"envoy" doc:"The program; a name without a slash is looked up in PATH."`
	LogLevel LogLevel `yaml:"log_level" default:"warning" doc:"How much the proxy logs."`
}

// LogLevel is a log level of Envoy.
type LogLevel string

// Values lists the log levels.
func (LogLevel) Values() []string {
	return []string{"trace", "debug", "info", "warning", "error", "critical", "off"}
}
