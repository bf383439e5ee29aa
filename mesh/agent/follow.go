package agent

import (
	"context"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api/meshv1"
)

type serviceKey struct{ name, node string }

// follow keeps the services of the mesh, and tells of each change.
func (a *Agent) follow(ctx context.Context, registry meshv1.ServiceRegistryClient) error {
	// A control plane that just started must not take away what is held (CAR-50).
	stream, err := registry.WatchServices(ctx, &meshv1.WatchServicesRequest{Held: a.holding})
	if err != nil {
		return err
	}
	for {
		news, err := stream.Recv()
		if err != nil {
			return ended(err)
		}
		if news.GetSnapshot() {
			clear(a.held)
		}
		for _, s := range news.GetSet() {
			a.held[serviceKey{s.GetService().GetName(), s.GetNodeId()}] = s
		}
		for _, k := range news.GetRemoved() {
			delete(a.held, serviceKey{k.GetName(), k.GetNodeId()})
		}
		a.holding = true
		services, err := a.resolve(ctx, registry)
		if err != nil {
			return err
		}
		a.keep(services)
		if a.cfg.OnServices != nil {
			a.cfg.OnServices(services)
		}
	}
}

// resolve adds the descriptor sets. One that cannot be had leaves its instance
// without: it can be called by those who know the interface.
func (a *Agent) resolve(ctx context.Context, registry meshv1.ServiceRegistryClient) ([]Service, error) {
	services := make([]Service, 0, len(a.held))
	for _, s := range a.held {
		services = append(services, Service{MeshService: s})
	}
	sortServices(services)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxUploads)
	asked := map[string]bool{}
	for _, s := range services {
		hash := s.GetService().GetDescriptors()
		if hash == "" || asked[hash] || a.list.descriptorSet(hash) != nil {
			continue
		}
		asked[hash] = true
		g.Go(func() error {
			_, err := a.descriptors.get(gctx, registry, hash)
			switch status.Code(err) {
			case codes.OK:
				return nil
			case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
				return err // the session is over
			default:
				a.log.Warn("no descriptors", "hash", hash, "error", err)
				return nil
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, s := range services {
		services[i].Descriptors = a.descriptorsOf(s)
	}
	return services, nil
}

// descriptorsOf returns a descriptor set that is at hand, nil if it is not.
func (a *Agent) descriptorsOf(s Service) []byte {
	hash := s.GetService().GetDescriptors()
	if set, ok := a.descriptors.stored(hash); ok {
		return set
	}
	return a.list.descriptorSet(hash)
}
