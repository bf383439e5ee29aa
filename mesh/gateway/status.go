package gateway

import (
	goruntime "runtime"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/relay"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
)

// Status is what a gateway knows of itself. Times since are those of the state
// beside them.
type Status struct {
	Node         string             `json:"node"`
	NodeID       string             `json:"node_id,omitempty"`
	Epoch        uint64             `json:"epoch,omitempty"`
	Started      time.Time          `json:"started"`
	ControlPlane ControlPlaneStatus `json:"control_plane"`
	Envoy        envoy.State        `json:"envoy"`
	ADS          relay.State        `json:"ads"`
	Networks     []NetworkStatus    `json:"networks"`
	Instances    []InstanceStatus   `json:"instances"`
	// Watches are those that the gateway serves, of instances of its networks.
	Watches    grpcadapter.WatchStats `json:"watches"`
	Mesh       int                    `json:"mesh"` // services of the mesh that are known
	Goroutines int                    `json:"goroutines"`
}

// ControlPlaneStatus is the connection to the control plane.
type ControlPlaneStatus struct {
	Address   string            `json:"address"`
	Connected bool              `json:"connected"`
	Since     time.Time         `json:"since"`
	Reason    string            `json:"reason,omitempty"`  // why it is not connected
	Refused   []*meshv1.Refusal `json:"refused,omitempty"` // instances that it did not take
}

// NetworkStatus is one SOME/IP network. The counters say what was received and
// could not be used, or not be sent, since it was opened.
type NetworkStatus struct {
	Name      string         `json:"name"`
	Address   string         `json:"address"`
	Up        bool           `json:"up"`
	Since     time.Time      `json:"since"`
	Reason    string         `json:"reason,omitempty"`
	Counters  *runtime.Stats `json:"counters,omitempty"`
	Discovery *sd.Stats      `json:"discovery,omitempty"`
}

// InstanceStatus is an instance that the gateway imported, or a native service of
// the node file.
type InstanceStatus struct {
	Name      string           `json:"name"` // mesh name
	Interface string           `json:"interface"`
	Instance  string           `json:"instance"`
	From      string           `json:"from"` // network, or where a native service listens
	Up        bool             `json:"up"`
	Since     time.Time        `json:"since"`
	Reason    string           `json:"reason,omitempty"`
	Exposures []ExposureStatus `json:"exposures,omitempty"`
}

// ExposureStatus is an instance on another network, or why it is not there.
type ExposureStatus struct {
	On     string    `json:"on"`
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason,omitempty"`
}

func (g *gateway) status() *Status {
	a := g.agent.Status()
	s := &Status{
		Node: g.node.Name, NodeID: a.Identity.ID, Epoch: a.Identity.Epoch, Started: g.started,
		ControlPlane: ControlPlaneStatus{
			Address: g.node.ControlPlane.String(), Connected: a.Connected, Since: a.Since, Reason: a.Reason, Refused: a.Refused,
		},
		Envoy: g.supervisor.State(), ADS: g.relay.State(), Mesh: g.catalogue.size(),
		Networks: []NetworkStatus{}, Instances: g.nativeStatus(), Goroutines: goruntime.NumGoroutine(),
		Watches: g.server.WatchStats(),
	}
	for _, n := range g.networks {
		s.Networks = append(s.Networks, n.status())
	}
	for _, b := range g.table.Plan() {
		s.Instances = append(s.Instances, instanceStatus(b))
	}
	return s
}

func (n *network) status() NetworkStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := NetworkStatus{Name: n.name, Address: n.address, Up: n.open != nil, Since: n.since}
	if n.open != nil {
		counters, discovery := n.open.network.Stats(), n.open.network.DiscoveryStats()
		s.Counters, s.Discovery = &counters, &discovery
	} else if n.err != nil {
		s.Reason = n.err.Error()
	}
	return s
}

func instanceStatus(b bridge.Bridge) InstanceStatus {
	s := InstanceStatus{
		Name: b.MeshName(), Interface: b.Interface.FullName(), Instance: b.Name, From: b.Via.String(),
		Up: b.Up, Since: b.Since, Reason: b.Reason,
	}
	for _, x := range b.Exposures {
		s.Exposures = append(s.Exposures, ExposureStatus{
			On: x.On.String(), State: x.State.String(), Since: x.Since, Reason: x.Reason,
		})
	}
	return s
}
