package gateway

import (
	"slices"
	"sync"

	protopb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// catalogue is what the gateway knows of the mesh.
type catalogue struct {
	read map[string]struct{} // hashes of descriptor sets that were read; the agent's goroutine only

	mu      sync.Mutex
	entries []grpcadapter.CatalogueEntry
	others  map[string]string // mesh name → another node that serves it and stays
	paths   map[string]bool   // clusters of which Envoy has an endpoint
}

// setCatalogue takes the services of the mesh. The interfaces that come along are
// learned first, so that an offer on a network is recognised by what another node
// described.
func (g *gateway) setCatalogue(services []agent.Service) {
	entries := make([]grpcadapter.CatalogueEntry, 0, len(services))
	others := map[string]string{}
	for _, s := range services {
		g.learn(s)
		if in := s.GetService(); s.GetNodeName() != g.node.Name && in.GetState() == meshv1.InstanceState_INSTANCE_UP &&
			in.GetLeaving() == meshv1.Leaving_STAYS {
			others[in.GetName()] = s.GetNodeName()
		}
		if s.GetStandby() {
			continue // the owner's entry counts
		}
		entries = append(entries, toEntry(s))
	}
	c := &g.catalogue
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries, c.others = entries, others
	g.server.SetCatalogue(entries)
	g.importer.SetCatalogue(c.callable())
}

// setPaths is told by the relay which clusters Envoy has endpoints of.
func (g *gateway) setPaths(clusters map[string]bool) {
	c := &g.catalogue
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := false
	for cluster, some := range clusters {
		changed = changed || c.paths[cluster] != some
		if some {
			c.paths[cluster] = true
		} else {
			delete(c.paths, cluster)
		}
	}
	if changed {
		g.importer.SetCatalogue(c.callable())
	}
}

// callable returns the entries, with those down that Envoy has no path to yet. An
// offer on a network promises that calls work, and the news of a service may come
// before Envoy has taken its endpoints.
func (c *catalogue) callable() []grpcadapter.CatalogueEntry {
	entries := slices.Clone(c.entries)
	for i, e := range entries {
		if e.Up && !c.paths[e.Name+"/local"] && !c.paths[e.Name+"/remote"] {
			entries[i].Up, entries[i].Reason = false, "the proxy has no path to it"
		}
	}
	return entries
}

// successor names another node that serves an instance and stays, "" for none. A
// standby counts: it takes over.
func (c *catalogue) successor(meshName string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.others[meshName]
}

func (c *catalogue) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

func toEntry(s agent.Service) grpcadapter.CatalogueEntry {
	in := s.GetService()
	o := in.GetOrigin()
	return grpcadapter.CatalogueEntry{
		Name: in.GetName(), Interface: in.GetInterface(), Instance: in.GetInstance(),
		Up:     in.GetState() == meshv1.InstanceState_INSTANCE_UP,
		Reason: in.GetReason(), Since: in.GetSince().AsTime(), Descriptors: s.Descriptors,
		Origin: bridge.Origin{
			Protocol: fromProtocol(o.GetProtocol()), Network: o.GetNetwork(),
			ServiceID: uint16(o.GetServiceId()), InstanceID: uint16(o.GetInstanceId()),
			Major: o.GetMajor(), Minor: o.GetMinor(), Node: s.GetNodeName(),
		},
		NodeName: s.GetNodeName(),
	}
}

// learn adds the interface of a service, if its descriptors are new.
func (g *gateway) learn(s agent.Service) {
	hash := s.GetService().GetDescriptors()
	if len(s.Descriptors) == 0 {
		return
	}
	if _, done := g.catalogue.read[hash]; done {
		return
	}
	g.catalogue.read[hash] = struct{}{}
	fds := &descriptorpb.FileDescriptorSet{}
	err := protopb.Unmarshal(s.Descriptors, fds)
	var set *proto.Set
	if err == nil {
		set, err = proto.FromDescriptors(fds)
	}
	if err == nil {
		for _, i := range set.Interfaces {
			if err = g.interfaces.Add(i, set.Descriptors(i.FullName())); err != nil {
				break
			}
		}
	}
	if err != nil {
		g.log.Error("interface of the mesh refused", "name", s.GetService().GetName(), "node", s.GetNodeName(), "error", err)
	}
}
