package gateway

import (
	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// announce makes an imported instance a service of this node (CAR-15). What came
// from the mesh belongs to the node that announced it.
func (g *gateway) announce(s bridge.State) {
	if s.FromMesh() {
		return
	}
	g.agent.Set(s.Via.String(), agent.Instance{
		Interface: s.Interface.FullName(), Instance: s.Name, Origin: toOrigin(s.Origin),
		Address: "unix:" + g.path(gatewaySocket), Descriptors: s.Descriptors,
		Up: s.Up, Reason: s.Reason, Since: s.Since, Replica: g.isReplica(s),
	})
}

// isReplica reports whether the node file declares an instance to stand for several.
func (g *gateway) isReplica(s bridge.State) bool {
	for i := range g.node.Networks {
		n := &g.node.Networks[i]
		for _, r := range n.Replicas {
			if s.Via.Protocol == bridge.SOMEIP && n.Name == s.Via.Name && r.Interface == s.Interface.FullName() && r.Name == s.Name {
				return true
			}
		}
	}
	return false
}

func toOrigin(o bridge.Origin) *meshv1.Origin {
	return &meshv1.Origin{
		Protocol: toProtocol(o.Protocol), Network: o.Network,
		ServiceId: uint32(o.ServiceID), InstanceId: uint32(o.InstanceID), Major: o.Major, Minor: o.Minor,
	}
}

func toProtocol(p bridge.Protocol) meshv1.Protocol {
	switch p {
	case bridge.GRPC:
		return meshv1.Protocol_GRPC
	case bridge.SOMEIP:
		return meshv1.Protocol_SOMEIP
	case bridge.DBus:
		return meshv1.Protocol_DBUS
	default:
		return meshv1.Protocol_PROTOCOL_UNSPECIFIED
	}
}

func fromProtocol(p meshv1.Protocol) bridge.Protocol {
	switch p {
	case meshv1.Protocol_GRPC:
		return bridge.GRPC
	case meshv1.Protocol_SOMEIP:
		return bridge.SOMEIP
	case meshv1.Protocol_DBUS:
		return bridge.DBus
	default:
		return 0
	}
}

// deployedIDs notes the ids under which SOME/IP clients know a native instance,
// if its interface has some.
func deployedIDs(o *meshv1.Origin, iface *model.Interface, instance string) {
	if iface.SOMEIP == nil {
		return
	}
	id, ok := iface.SOMEIP.InstanceID(instance)
	if !ok {
		return
	}
	o.ServiceId, o.InstanceId = uint32(iface.SOMEIP.ServiceID), uint32(id)
	o.Major, o.Minor = iface.Version.Major, iface.Version.Minor
}
