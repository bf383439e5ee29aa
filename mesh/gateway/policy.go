package gateway

import (
	"fmt"

	"carisma.dev/gateway/bridge"
)

// policy is the default one, narrowed by what the node file exposes on a network.
func (g *gateway) policy(inst bridge.Instance, on bridge.Network) (denied string) {
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
