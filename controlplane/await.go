package controlplane

import (
	"context"
	"time"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// How long AwaitProxies waits.
const (
	defaultAwait = 2 * time.Second
	maxAwait     = 10 * time.Second
)

// AwaitProxies implements meshv1.ServiceRegistryServer. A proxy that is not
// connected is not waited for: it asks for everything when it is back.
func (s *serviceService) AwaitProxies(ctx context.Context, req *meshv1.AwaitProxiesRequest) (*meshv1.AwaitProxiesResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	timeout := defaultAwait
	if d := req.GetTimeout(); d != nil {
		if d.CheckValid() != nil || d.AsDuration() < 0 {
			return nil, invalid("timeout: no time")
		}
		timeout = min(d.AsDuration(), maxAwait)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	acknowledged, late := s.cache.Await(ctx, s.registry.Snapshot().Version, req.GetName())
	return &meshv1.AwaitProxiesResponse{Acknowledged: acknowledged, Late: late}, nil
}
