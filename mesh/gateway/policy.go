package gateway

import (
	"fmt"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/someip"
)

// policy is the default one, narrowed and widened by what the node file exposes on
// a network.
func (g *gateway) policy(inst bridge.Instance, on bridge.Network) (denied string) {
	if inst.Origin.Protocol == bridge.SOMEIP && on.Protocol == bridge.SOMEIP {
		for _, n := range g.networks {
			if _, ok := n.ids(inst); ok && n.name == on.Name {
				return ""
			}
		}
		return fmt.Sprintf("it is a SOME/IP service of network %s, which no rule under expose.someip of network %s names",
			inst.Origin.Network, on.Name)
	}
	if denied := bridge.DefaultPolicy(inst, on); denied != "" || on.Protocol != bridge.SOMEIP {
		return denied
	}
	for _, n := range g.node.Networks {
		if n.Name == on.Name && !n.Expose.Allows(inst.Interface.FullName(), inst.Name) {
			return fmt.Sprintf("network %s exposes only what its expose list names", n.Name)
		}
	}
	return ""
}

// ids returns the ids under which an instance of another SOME/IP network is offered
// here.
func (n *network) ids(inst bridge.Instance) (someip.InstanceKey, bool) {
	o := inst.Origin
	ids, ok := n.expose.IDs(o.Network, o.ServiceID, o.InstanceID)
	return someip.InstanceKey{Service: ids.Service, Instance: ids.Instance, Major: uint8(o.Major)}, ok
}

// wanted tells which SOME/IP instances of the mesh are imported: those that a rule
// exposes on a network of this node. What is on a network of this node is seen there.
func (g *gateway) wanted(e grpcadapter.CatalogueEntry) bool {
	if e.Origin.Protocol != bridge.SOMEIP {
		return false
	}
	exposed := false
	for _, n := range g.networks {
		if n.name == e.Origin.Network {
			return false
		}
		_, ok := n.ids(bridge.Instance{Origin: e.Origin})
		exposed = exposed || ok
	}
	return exposed
}
