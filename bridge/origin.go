package bridge

import "fmt"

// Protocol is a protocol that an adapter speaks.
type Protocol uint8

// The protocols.
const (
	GRPC Protocol = iota + 1
	SOMEIP
	DBus
)

func (p Protocol) String() string {
	switch p {
	case GRPC:
		return "gRPC"
	case SOMEIP:
		return "SOME/IP"
	case DBus:
		return "D-Bus"
	default:
		return fmt.Sprintf("protocol %d", uint8(p))
	}
}

// Origin says where an instance was first seen. It stays with the instance on
// its way through the mesh, so that no gateway brings it back where it is from.
type Origin struct {
	Protocol Protocol
	Network  string // name of the network, unique in the vehicle; empty for gRPC
	// SOME/IP ids, zero on other protocols.
	ServiceID, InstanceID uint16
	Major, Minor          uint32
	Node                  string // name of the node that saw it
}

// Network is what an adapter is attached to. The gRPC side of the mesh is a
// network without a name.
type Network struct {
	Protocol Protocol
	Name     string
}

func (n Network) String() string {
	if n.Name == "" {
		return n.Protocol.String()
	}
	return n.Protocol.String() + " network " + n.Name
}

// On tells whether the instance comes from the network.
func (o Origin) On(n Network) bool { return o.Protocol == n.Protocol && o.Network == n.Name }
