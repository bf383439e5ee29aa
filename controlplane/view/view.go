// Package view computes what each node's proxy has to know from a registry
// snapshot. Its functions are pure: the same snapshot gives the same views.
//
// A view depends on the node and never on which local service asks (CAR-4), and
// it differs from node to node (CAR-20).
package view

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// Class says where a mesh service is, seen from a node.
type Class uint8

const (
	// Gone means that no instance can be reached. The node's own gateway tells callers why.
	Gone Class = iota
	// Local means on the node itself (CAR-26).
	Local
	// Remote means on other nodes, through their ingress (CAR-27).
	Remote
)

func (c Class) String() string {
	switch c {
	case Local:
		return "local"
	case Remote:
		return "remote"
	default:
		return "gone"
	}
}

// Endpoint is one place that serves a mesh service.
type Endpoint struct {
	Node    string // id of the node that it is on
	Name    string // name of that node
	Address registry.Address
	// Draining: calls that run go on, new ones go to the others.
	Draining bool
}

// Entry is a mesh service with the endpoints that a view gives it.
type Entry struct {
	Service   string // mesh name
	Endpoints []Endpoint
}

// Route is what a node's egress does with a mesh service.
type Route struct {
	Entry
	Class Class
}

// LocalOf returns the endpoints of a service on the node itself: the machine's own
// address and the service's port (CAR-18). One that leaves stays here until it is
// removed (CAR-25). A standby is here too, though nobody is led to it: so an owner
// can change at once, and calls that are under way to the old one arrive.
func LocalOf(node string, s *registry.Service) []Endpoint {
	return localOf(node, s, func(inst *registry.Instance) bool { return inst.Up })
}

func localOf(node string, s *registry.Service, want func(*registry.Instance) bool) []Endpoint {
	var endpoints []Endpoint
	for _, inst := range s.Instances {
		if inst.Node.ID == node && want(inst) {
			endpoints = append(endpoints, Endpoint{Node: node, Name: inst.Node.Name, Address: inst.Address})
		}
	}
	return endpoints
}

// GlobalOf returns the endpoints of a service on other nodes: the address of the
// node and the port of its ingress, never the service's own (CAR-19). A node
// without a proxy has no ingress. Of several, the proxy balances calls over all (CAR-28).
func GlobalOf(node string, s *registry.Service) []Endpoint { return globalOf(node, s, serves) }

func globalOf(node string, s *registry.Service, want func(*registry.Instance) bool) []Endpoint {
	var endpoints []Endpoint
	for _, inst := range s.Instances {
		if inst.Node.ID == node || !want(inst) || inst.Node.Proxy == nil {
			continue
		}
		endpoints = append(endpoints, Endpoint{
			Node: inst.Node.ID, Name: inst.Node.Name,
			Address: registry.Address{Addr: netip.AddrPortFrom(inst.Node.Address, inst.Node.Proxy.Ingress.Port())},
		})
	}
	slices.SortFunc(endpoints, func(a, b Endpoint) int { return cmp.Compare(a.Node, b.Node) })
	return endpoints
}

func serves(inst *registry.Instance) bool { return inst.Up && !inst.Standby }

func stays(inst *registry.Instance) bool {
	return serves(inst) && inst.Leaving == meshv1.Leaving_STAYS
}

func drains(inst *registry.Instance) bool {
	return serves(inst) && inst.Leaving == meshv1.Leaving_LEAVING_DRAINING
}

// RouteOf returns what the egress of a node does with a service: a local instance
// shadows the remote ones (CAR-21, 24), unless it drains (CAR-25). What drains
// keeps its calls and gets no others while an instance stays; the last is never
// draining. What is withdrawn gets none.
func RouteOf(node string, s *registry.Service) Route {
	if local := localOf(node, s, stays); len(local) > 0 {
		return Route{Entry{s.Name, local}, Local}
	}
	draining := globalOf(node, s, drains)
	if global := globalOf(node, s, stays); len(global) > 0 {
		for _, e := range draining {
			e.Draining = true
			global = append(global, e)
		}
		return Route{Entry{s.Name, global}, Remote}
	}
	if local := localOf(node, s, drains); len(local) > 0 {
		return Route{Entry{s.Name, local}, Local}
	}
	if len(draining) > 0 {
		return Route{Entry{s.Name, draining}, Remote}
	}
	return Route{Entry{s.Name, nil}, Gone}
}

// Ingress returns what the ingress of a node carries: its local view and nothing
// else, so no call passes through (CAR-23). Entries are sorted by service.
func Ingress(snap *registry.Snapshot, node string) []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(snap.Services)) {
		if local := LocalOf(node, snap.Services[name]); len(local) > 0 {
			entries = append(entries, Entry{name, local})
		}
	}
	return entries
}

// Global returns the global view of a node before what is local is discarded.
func Global(snap *registry.Snapshot, node string) []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(snap.Services)) {
		if global := GlobalOf(node, snap.Services[name]); len(global) > 0 {
			entries = append(entries, Entry{name, global})
		}
	}
	return entries
}

// Egress returns what the egress of a node carries: every service of the mesh
// once, with the one class that it has there (CAR-24).
func Egress(snap *registry.Snapshot, node string) []Route {
	routes := make([]Route, 0, len(snap.Services))
	for _, name := range slices.Sorted(maps.Keys(snap.Services)) {
		routes = append(routes, RouteOf(node, snap.Services[name]))
	}
	return routes
}

// Has reports whether a service has an instance on the node, whatever its state.
func Has(node string, s *registry.Service) bool {
	return slices.ContainsFunc(s.Instances, func(inst *registry.Instance) bool { return inst.Node.ID == node })
}
