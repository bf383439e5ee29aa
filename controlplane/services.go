package controlplane

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/controlplane/xds"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// serviceService serves meshv1.ServiceRegistry.
type serviceService struct {
	meshv1.UnimplementedServiceRegistryServer
	done     <-chan struct{} // the server ends, and watches with it
	registry *registry.Registry
	store    *store.Store
	cache    *xds.Cache
}

// Synchronize implements meshv1.ServiceRegistryServer.
func (s *serviceService) Synchronize(ctx context.Context, req *meshv1.SynchronizeRequest) (*meshv1.SynchronizeResponse, error) {
	refusals, err := s.registry.Synchronize(identity(ctx), req.GetServices())
	if err != nil {
		return nil, err
	}
	return &meshv1.SynchronizeResponse{Refusals: refusals}, nil
}

// Update implements meshv1.ServiceRegistryServer.
func (s *serviceService) Update(ctx context.Context, req *meshv1.UpdateRequest) (*meshv1.UpdateResponse, error) {
	refusals, err := s.registry.Update(identity(ctx), req.GetSet(), req.GetRemove())
	if err != nil {
		return nil, err
	}
	return &meshv1.UpdateResponse{Refusals: refusals}, nil
}

// ListServices implements meshv1.ServiceRegistryServer.
func (s *serviceService) ListServices(ctx context.Context, _ *meshv1.ListServicesRequest) (*meshv1.ListServicesResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	return &meshv1.ListServicesResponse{Services: allServices(s.registry.Snapshot())}, nil
}

func allServices(snap *registry.Snapshot) []*meshv1.MeshService {
	var all []*meshv1.MeshService
	for _, name := range slices.Sorted(maps.Keys(snap.Services)) {
		for _, inst := range snap.Services[name].Instances {
			all = append(all, meshService(inst))
		}
	}
	return all
}

// meshService tells an instance as it counts: its node may be lost.
func meshService(inst *registry.Instance) *meshv1.MeshService {
	spec := proto.CloneOf(inst.Spec)
	spec.State, spec.Reason, spec.Since = meshv1.InstanceState_INSTANCE_UP, inst.Reason, timestamppb.New(inst.Since)
	if !inst.Up {
		spec.State = meshv1.InstanceState_INSTANCE_DOWN
	}
	return &meshv1.MeshService{
		Service: spec, NodeId: inst.Node.ID, NodeName: inst.Node.Name, Standby: inst.Standby,
	}
}

// WatchServices implements meshv1.ServiceRegistryServer. Changes that a watcher has
// not taken yet merge, so a slow one is behind and never in the way; one that
// takes nothing at all is cut off.
func (s *serviceService) WatchServices(req *meshv1.WatchServicesRequest, stream grpc.ServerStreamingServer[meshv1.WatchServicesResponse]) error {
	if err := checkReader(stream.Context(), s.registry); err != nil {
		return err
	}
	snap, sub := s.registry.Subscribe()
	defer sub.Close()
	w := &watcher{stream: stream, told: map[string]map[string]bool{}}
	if req.GetHeld() {
		for !snap.Settled { // CAR-50
			select {
			case <-sub.Ready():
				_, snap = sub.Take()
			case <-stream.Context().Done():
				return stream.Context().Err()
			case <-s.done:
				return status.Error(codes.Unavailable, "the control plane ends")
			}
		}
	}
	if err := w.send(w.first(snap)); err != nil {
		return err
	}
	for {
		select {
		case <-sub.Ready():
			changes, now := sub.Take()
			if resp := w.changed(now, changes); len(resp.GetSet())+len(resp.GetRemoved()) > 0 {
				if err := w.send(resp); err != nil {
					return err
				}
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-s.done:
			return status.Error(codes.Unavailable, "the control plane ends")
		}
	}
}

// PutDescriptors implements meshv1.ServiceRegistryServer.
func (s *serviceService) PutDescriptors(ctx context.Context, req *meshv1.PutDescriptorsRequest) (*meshv1.PutDescriptorsResponse, error) {
	if err := s.registry.Check(identity(ctx)); err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(req.GetDescriptorSet(), &descriptorpb.FileDescriptorSet{}); err != nil {
		return nil, invalid("no descriptor set: %v", err)
	}
	hash, err := s.store.PutDescriptors(req.GetDescriptorSet())
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrTooLarge):
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &meshv1.PutDescriptorsResponse{Hash: hash}, nil
}

// GetDescriptors implements meshv1.ServiceRegistryServer.
func (s *serviceService) GetDescriptors(ctx context.Context, req *meshv1.GetDescriptorsRequest) (*meshv1.GetDescriptorsResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	set, err := s.store.Descriptors(req.GetHash())
	switch {
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	case set == nil:
		return nil, status.Errorf(codes.NotFound, "no descriptor set has the hash %q", req.GetHash())
	}
	return &meshv1.GetDescriptorsResponse{DescriptorSet: set}, nil
}
