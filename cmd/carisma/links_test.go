package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
)

const whyName = "left.cabin.climate.v1.climate"

// unbroken is a service that rear's gateway imports and center's callers call.
func unbroken() *facts {
	proxy := func(id string) *meshv1.Proxy {
		return &meshv1.Proxy{NodeId: id, NodeName: id, Peer: "somewhere", Types: []*meshv1.ResourceTypeStatus{{
			TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster", SentVersion: "3", AckedVersion: "3",
		}}}
	}
	route := func(class meshv1.RouteClass) []*meshv1.Route {
		return []*meshv1.Route{{Name: whyName, Class: class, Endpoint: "10.0.0.2:15001"}}
	}
	return &facts{
		name:  whyName,
		nodes: []*meshv1.Node{{Id: "center", Name: "center", State: meshv1.NodeState_NODE_UP}, {Id: "rear", Name: "rear", State: meshv1.NodeState_NODE_UP}},
		services: []*meshv1.MeshService{{
			NodeId: "rear", NodeName: "rear",
			Service: &meshv1.ServiceInstance{Name: whyName, State: meshv1.InstanceState_INSTANCE_UP},
		}},
		routes: []*meshv1.NodeRoutes{
			{NodeId: "center", NodeName: "center", Egress: route(meshv1.RouteClass_REMOTE)},
			{NodeId: "rear", NodeName: "rear", Egress: route(meshv1.RouteClass_LOCAL)},
		},
		proxies: []*meshv1.Proxy{proxy("center"), proxy("rear")},
		gateways: []*gateway.Status{{
			Node: "rear", Instances: []gateway.InstanceStatus{{Name: whyName, From: "SOME/IP network rear-ecu", Up: true, Since: time.Now()}},
			ControlPlane: gateway.ControlPlaneStatus{Connected: true},
		}},
	}
}

// firstBroken is the link that explain names, as its table does.
func firstBroken(f *facts) string {
	for _, l := range f.explain() {
		if l.State == broken {
			return l.Link + " of " + l.Of + ": " + l.Detail
		}
	}
	return ""
}

// Each link is the one that is named when it is the one that is broken.
func TestWhy(t *testing.T) {
	t.Parallel()
	whole := unbroken()
	require.Empty(t, firstBroken(whole))
	require.Len(t, whole.explain(), 7)

	for want, breakIt := range map[string]func(*facts){
		"source of rear: SOME/IP network rear-ecu, down since 0s ago: StopOffer": func(f *facts) {
			in := &f.gateways[0].Instances[0]
			in.Up, in.Reason, in.Since = false, "StopOffer", time.Now()
			f.services[0].Service.State = meshv1.InstanceState_INSTANCE_DOWN
		},
		"registry of rear: down since : its gateway is gone": func(f *facts) {
			f.gateways = nil
			f.services[0].Service.State, f.services[0].Service.Reason = meshv1.InstanceState_INSTANCE_DOWN, "its gateway is gone"
		},
		"registry of central: refused from node rear: the name is taken": func(f *facts) {
			f.services = nil
			f.gateways[0].ControlPlane.Refused = []*meshv1.Refusal{{Name: whyName, Reason: "the name is taken"}}
		},
		"registry of central: node rear does not reach it: no route": func(f *facts) {
			f.services = nil
			f.gateways[0].ControlPlane = gateway.ControlPlaneStatus{Reason: "no route"}
		},
		"registry of central: no instance has this name; the interface has left.cabin.climate.v1.climate": func(f *facts) {
			f.name = "roof.cabin.climate.v1.climate"
		},
		"view of center: gone": func(f *facts) {
			f.routes[0].Egress[0].Class = meshv1.RouteClass_GONE
			f.routes[0].Egress[0].Endpoint = ""
		},
		"proxy of center: never connected":                            func(f *facts) { f.proxies = f.proxies[1:] },
		"proxy of center: not connected; it goes on with what it has": func(f *facts) { f.proxies[0].Peer = "" },
		"proxy of rear: refuses Cluster left.cabin.climate.v1.climate/in since : bad": func(f *facts) {
			f.proxies[1].Types[0].Nacks = []*meshv1.Nack{{Resource: whyName + "/in", Reason: "bad"}}
		},
		"call of egress x: Unavailable": func(f *facts) {
			f.call = &link{Link: "call", Of: "egress x", State: broken, Detail: "Unavailable"}
		},
	} {
		f := unbroken()
		breakIt(f)
		require.Equal(t, want, firstBroken(f))
	}

	// What another has nothing to do with breaks nothing.
	f := unbroken()
	f.services = append(f.services, &meshv1.MeshService{
		NodeId: "center", NodeName: "center", Standby: true,
		Service: &meshv1.ServiceInstance{Name: whyName, State: meshv1.InstanceState_INSTANCE_UP},
	})
	f.proxies[0].Types[0].Nacks = []*meshv1.Nack{{Resource: "other"}}
	require.Empty(t, firstBroken(f))
}
