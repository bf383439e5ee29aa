package xds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/view"
)

// newAssignment is the endpoints of a cluster. Without endpoints it is an empty
// assignment and still a resource: Envoy ignores the removal of one and would keep
// the old endpoints (CAR-50).
func newAssignment(cluster string, endpoints []view.Endpoint) (*Resource, error) {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	if len(endpoints) > 0 {
		group := &endpointv3.LocalityLbEndpoints{}
		for _, e := range endpoints {
			lb := lbEndpoint(address(e.Address))
			lb.Metadata = nodeMetadata(e.Node)
			if e.Draining {
				lb.HealthStatus = corev3.HealthStatus_DRAINING
			}
			group.LbEndpoints = append(group.LbEndpoints, lb)
		}
		a.Endpoints = []*endpointv3.LocalityLbEndpoints{group}
	}
	r, err := NewResource(resourcev3.EndpointType, a)
	if err != nil {
		return nil, err
	}
	r.takesAway = len(endpoints) == 0
	return r, nil
}

func lbEndpoint(a *corev3.Address) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: a}},
	}
}

// nodeMetadata puts the id of the endpoint's node where Envoy's access log and
// administration show it (CAR-11).
func nodeMetadata(id string) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"carisma": {Fields: map[string]*structpb.Value{"node": structpb.NewStringValue(id)}},
	}}
}

func address(a registry.Address) *corev3.Address {
	if a.Path != "" {
		return pipe(a.Path)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.Addr.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Addr.Port())},
	}}}
}

func pipe(path string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}}
}
