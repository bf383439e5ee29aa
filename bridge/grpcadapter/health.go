package grpcadapter

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"
)

// health is the health service. Without a mesh name as authority it answers for
// the whole mesh: names are mesh names and full names of interfaces, which serve
// while an instance does; no name is the gateway. With one it answers for that
// instance, if it is served here: a proxy that has no path to an instance asks
// its own gateway in its place, and must not hear that all is well.
type health struct {
	healthv1.UnimplementedHealthServer
	server *Server
}

func (d *directory) health(authority, service string) (healthv1.HealthCheckResponse_ServingStatus, bool) {
	switch name := meshName(authority); {
	case d.targets[name] != nil:
		t := d.targets[name]
		if service != "" && service != t.family.name && meshName(service) != t.name {
			return healthv1.HealthCheckResponse_SERVICE_UNKNOWN, false
		}
		return serving(t.svc != nil), true
	case isMeshName(name):
		return healthv1.HealthCheckResponse_SERVICE_UNKNOWN, false
	case service == "":
		return healthv1.HealthCheckResponse_SERVING, true
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
