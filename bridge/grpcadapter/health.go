package grpcadapter

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
)

// health is the health service. Names are mesh names and full names of
// interfaces, which serve while an instance does; no name is the gateway, or
// the instance whose mesh name the authority is.
type health struct {
	healthv1.UnimplementedHealthServer
	server *Server
}

func (d *directory) health(authority, service string) (healthv1.HealthCheckResponse_ServingStatus, bool) {
	if service == "" {
		name := meshName(authority)
		if d.targets[name] == nil && !isMeshName(name) {
			return healthv1.HealthCheckResponse_SERVING, true
		}
		service = name
	}
	if t := d.targets[meshName(service)]; t != nil {
		return serving(t.up), true
	}
	if f := d.families[service]; f != nil {
		return serving(f.first.up), true
	}
	return healthv1.HealthCheckResponse_SERVICE_UNKNOWN, false
}

func serving(up bool) healthv1.HealthCheckResponse_ServingStatus {
	if up {
		return healthv1.HealthCheckResponse_SERVING
	}
	return healthv1.HealthCheckResponse_NOT_SERVING
}

func (h health) Check(ctx context.Context, req *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	st, known := h.server.current.Load().health(header(ctx, ":authority"), req.GetService())
	if !known {
		return nil, grpcstatus.Errorf(codes.NotFound, "unknown service %q", req.GetService())
	}
	return &healthv1.HealthCheckResponse{Status: st}, nil
}

func (h health) List(context.Context, *healthv1.HealthListRequest) (*healthv1.HealthListResponse, error) {
	d := h.server.current.Load()
	all := map[string]*healthv1.HealthCheckResponse{"": {Status: healthv1.HealthCheckResponse_SERVING}}
	for name, t := range d.targets {
		all[name] = &healthv1.HealthCheckResponse{Status: serving(t.up)}
	}
	return &healthv1.HealthListResponse{Statuses: all}, nil
}

func (h health) Watch(req *healthv1.HealthCheckRequest, stream grpc.ServerStreamingServer[healthv1.HealthCheckResponse]) error {
	ctx := stream.Context()
	sent := healthv1.HealthCheckResponse_UNKNOWN
	for {
		d, changed := h.server.watchable()
		st, _ := d.health(header(ctx, ":authority"), req.GetService())
		if st != sent {
			if err := stream.Send(&healthv1.HealthCheckResponse{Status: st}); err != nil {
				return err
			}
			sent = st
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return grpcstatus.FromContextError(ctx.Err()).Err()
		}
	}
}
