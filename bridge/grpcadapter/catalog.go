package grpcadapter

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

// catalog is the service carisma.v1.Catalog.
type catalog struct {
	carismav1.UnimplementedCatalogServer
	server *Server
}

type catalogKey struct{ name, node string }

func (c catalog) List(_ context.Context, req *carismav1.CatalogListRequest) (*carismav1.CatalogListResponse, error) {
	all, _ := c.server.instances(req.GetInterface())
	return &carismav1.CatalogListResponse{Instances: inOrder(all)}, nil
}

func (c catalog) Watch(req *carismav1.CatalogWatchRequest, stream grpc.ServerStreamingServer[carismav1.CatalogWatchResponse]) error {
	ctx := stream.Context()
	known, changed := c.server.instances(req.GetInterface())
	if err := stream.Send(&carismav1.CatalogWatchResponse{Snapshot: true, Set: inOrder(known)}); err != nil {
		return err
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return grpcstatus.FromContextError(ctx.Err()).Err()
		}
		var now map[catalogKey]*carismav1.CatalogInstance
		now, changed = c.server.instances(req.GetInterface())
		resp := catalogChange(known, now)
		known = now
		if len(resp.GetSet())+len(resp.GetRemoved()) == 0 {
			continue
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

func catalogChange(before, now map[catalogKey]*carismav1.CatalogInstance) *carismav1.CatalogWatchResponse {
	resp := &carismav1.CatalogWatchResponse{}
	set := map[catalogKey]*carismav1.CatalogInstance{}
	for k, in := range now {
		if !proto.Equal(before[k], in) {
			set[k] = in
		}
	}
	resp.Set = inOrder(set)
	for k := range before {
		if now[k] == nil {
			resp.Removed = append(resp.Removed, &carismav1.CatalogKey{Name: k.name, Node: k.node})
		}
	}
	slices.SortFunc(resp.GetRemoved(), func(a, b *carismav1.CatalogKey) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNode(), b.GetNode()))
	})
	return resp
}

func inOrder(all map[catalogKey]*carismav1.CatalogInstance) []*carismav1.CatalogInstance {
	return slices.SortedFunc(maps.Values(all), func(a, b *carismav1.CatalogInstance) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNode(), b.GetNode()))
	})
}

// instances returns all instances of an interface, of all where it is empty, and
// a channel that is closed when there are others. Of what this node serves it
// knows more than the catalogue, which comes from the control plane.
func (s *Server) instances(iface string) (map[catalogKey]*carismav1.CatalogInstance, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[catalogKey]*carismav1.CatalogInstance{}
	for _, e := range s.catalogue {
		if iface == "" || iface == e.Interface {
			all[catalogKey{e.Name, e.NodeName}] = catalogInstance(e)
		}
	}
	for name, l := range s.locals {
		e := CatalogueEntry{
			Name: name, Interface: l.inst.Interface.FullName(), Instance: l.inst.Name, NodeName: s.node,
			Up: l.svc != nil, Reason: l.reason, Since: l.since, Origin: l.inst.Origin,
		}
		if e.Origin.Protocol != bridge.GRPC && (iface == "" || iface == e.Interface) {
			all[catalogKey{name, s.node}] = catalogInstance(e)
		}
	}
	return all, s.changed
}

func catalogInstance(e CatalogueEntry) *carismav1.CatalogInstance {
	in := &carismav1.CatalogInstance{
		Name: e.Name, Interface: e.Interface, Instance: e.Instance, Node: e.NodeName,
		State: carismav1.CatalogState_CATALOG_UP, Since: timestamppb.New(e.Since),
		Protocol: e.Origin.Protocol.String(), Network: e.Origin.Network,
		ServiceId: uint32(e.Origin.ServiceID), InstanceId: uint32(e.Origin.InstanceID),
	}
	if !e.Up {
		in.State, in.Reason = carismav1.CatalogState_CATALOG_DOWN, e.Reason
	}
	return in
}
