package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip/sd"
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
		"source of center: 127.0.0.1:5000, down since 0s ago: it refuses connections": func(f *facts) { // a native service
			f.gateways = []*gateway.Status{{Node: "center", Instances: []gateway.InstanceStatus{{
				Name: whyName, From: "127.0.0.1:5000", Since: time.Now(), Reason: "it refuses connections",
			}}}}
			f.services[0].Service.State = meshv1.InstanceState_INSTANCE_DOWN
		},
		"registry of central: no instance has this name; network rear-ecu of node rear is down: no such address": func(f *facts) {
			f.services = nil
			f.gateways[0].Networks = []gateway.NetworkStatus{{Name: "rear-ecu", Reason: "no such address"}}
		},
		"registry of central: no instance has this name; on network rear-ecu of node rear, 3 offers or subscriptions " +
			"named 10.0.1.1/24 itself and were ignored": func(f *facts) {
			f.services = nil
			f.gateways[0].Networks = []gateway.NetworkStatus{{
				Name: "rear-ecu", Address: "10.0.1.1/24", Up: true, Discovery: &sd.Stats{OwnEndpoint: 3},
			}}
		},
		"registry of central: no instance has this name; on network rear-ecu of node rear, 5 offers and entries " +
			"were above what a peer may have": func(f *facts) {
			f.services = nil
			f.gateways[0].Networks = []gateway.NetworkStatus{{Name: "rear-ecu", Up: true, Discovery: &sd.Stats{OfferLimit: 2, EntryLimit: 3}}}
		},
		"view of center: no route": func(f *facts) { f.routes[0].Egress = nil },
		"proxy of center: refuses Listener egress since : bad": func(f *facts) {
			f.proxies[0].Types[0] = &meshv1.ResourceTypeStatus{
				TypeUrl: "type.googleapis.com/envoy.config.listener.v3.Listener", Nacks: []*meshv1.Nack{{Resource: "egress", Reason: "bad"}},
			}
		},
		"proxy of rear: has not answered Cluster 4, sent 1m0s ago": func(f *facts) {
			f.proxies[1].Types[0].SentVersion, f.proxies[1].Types[0].Sent = "4", timestamppb.New(time.Now().Add(-time.Minute))
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
	f.proxies[0].Types[0].SentVersion, f.proxies[0].Types[0].Sent = "9", timestamppb.New(time.Now().Add(-time.Minute))
	require.Empty(t, firstBroken(f))

	// A lost lease takes what its gateway bridges down, and is named beside it; a native
	// service goes on by its proxy.
	f = unbroken()
	f.nodes[1].State = meshv1.NodeState_NODE_LOST
	require.Empty(t, firstBroken(f))
	f.services[0].Service.State = meshv1.InstanceState_INSTANCE_DOWN
	f.gateways = nil
	require.Equal(t, []linkState{broken, broken}, []linkState{f.explain()[0].State, f.explain()[1].State})
	require.Equal(t, "lease", f.explain()[1].Link)

	// What was just sent is under way.
	f = unbroken()
	f.proxies[0].Types[0].SentVersion, f.proxies[0].Types[0].Sent = "4", timestamppb.New(time.Now())
	require.Empty(t, firstBroken(f))
	require.Equal(t, waiting, f.explain()[5].State)
}
