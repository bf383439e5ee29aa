package gateway

import (
	"sync/atomic"

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
	read    map[string]struct{} // hashes of descriptor sets that were read; the agent's goroutine only
	entries atomic.Int64
}

// setCatalogue takes the services of the mesh. The interfaces that come along are
// learned first, so that an offer on a network is recognised by what another node
// described.
func (g *gateway) setCatalogue(services []agent.Service) {
	entries := make([]grpcadapter.CatalogueEntry, 0, len(services))
	for _, s := range services {
		g.learn(s)
		if s.GetStandby() {
			continue // the owner's entry counts
		}
		entries = append(entries, toEntry(s))
	}
	g.catalogue.entries.Store(int64(len(entries)))
	g.server.SetCatalogue(entries)
	g.importer.SetCatalogue(entries)
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
	if g.catalogue.read == nil {
		g.catalogue.read = map[string]struct{}{}
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
