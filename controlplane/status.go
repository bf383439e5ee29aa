package controlplane

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/view"
	"carisma.dev/gateway/controlplane/xds"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// statusService serves meshv1.Status.
type statusService struct {
	meshv1.UnimplementedStatusServer
	registry *registry.Registry
	cache    *xds.Cache
	counters func() map[string]uint64
}

// GetRoutes implements meshv1.StatusServer. A service with several endpoints has a
// route for each.
func (s *statusService) GetRoutes(ctx context.Context, req *meshv1.GetRoutesRequest) (*meshv1.GetRoutesResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	resp := &meshv1.GetRoutesResponse{}
	snap := s.registry.Snapshot()
	for _, n := range sortedNodes(snap) {
		if n.Proxy == nil || req.GetNode() != "" && req.GetNode() != n.Name {
			continue
		}
		routes := &meshv1.NodeRoutes{NodeId: n.ID, NodeName: n.Name}
		for _, e := range view.Ingress(snap, n.ID) {
			routes.Ingress = append(routes.Ingress, routeProtos(view.Route{Entry: e, Class: view.Local})...)
		}
		for _, r := range view.Egress(snap, n.ID) {
			routes.Egress = append(routes.Egress, routeProtos(r)...)
		}
		resp.Nodes = append(resp.Nodes, routes)
	}
	if len(resp.GetNodes()) == 0 && req.GetNode() != "" {
		return nil, status.Errorf(codes.NotFound, "no node with a proxy has the name %q", req.GetNode())
	}
	return resp, nil
}

func routeProtos(r view.Route) []*meshv1.Route {
	class := map[view.Class]meshv1.RouteClass{
		view.Local: meshv1.RouteClass_LOCAL, view.Remote: meshv1.RouteClass_REMOTE, view.Gone: meshv1.RouteClass_GONE,
	}[r.Class]
	if len(r.Endpoints) == 0 {
		return []*meshv1.Route{{Name: r.Service, Class: class}}
	}
	var all []*meshv1.Route
	for _, e := range r.Endpoints {
		all = append(all, &meshv1.Route{Name: r.Service, Class: class, Endpoint: e.Address.String(), TargetNode: e.Name})
	}
	return all
}

// GetProxies implements meshv1.StatusServer. A node whose proxy is not connected is
// listed without a peer.
func (s *statusService) GetProxies(ctx context.Context, _ *meshv1.GetProxiesRequest) (*meshv1.GetProxiesResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	resp := &meshv1.GetProxiesResponse{Counters: s.counters()}
	for _, p := range s.cache.Proxies() {
		m := &meshv1.Proxy{NodeId: p.Node, NodeName: p.Name, Peer: p.Peer, Connected: timestamp(p.Connected)}
		for _, t := range p.Types {
			m.Types = append(m.Types, typeProto(t))
		}
		resp.Proxies = append(resp.Proxies, m)
	}
	return resp, nil
}

func typeProto(t xds.TypeStatus) *meshv1.ResourceTypeStatus {
	m := &meshv1.ResourceTypeStatus{
		TypeUrl: t.Type, Resources: uint32(t.Resources),
		SentVersion: t.Sent, AckedVersion: t.Acked, Sent: timestamp(t.SentAt), Acked: timestamp(t.AckedAt),
	}
	for _, name := range slices.Sorted(maps.Keys(t.Nacks)) {
		nack := t.Nacks[name]
		m.Nacks = append(m.Nacks, &meshv1.Nack{Resource: name, Reason: nack.Reason, Since: timestamp(nack.Since)})
	}
	return m
}

// timestamp leaves a time that never was out.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
