package main

import (
	"context"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"carisma.dev/gateway/interop/faults/faultsv1"
)

type native struct {
	faultsv1.UnimplementedNativeServer
	interval time.Duration
}

func serveNative(ctx context.Context, address string, interval time.Duration) error {
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	faultsv1.RegisterNativeServer(server, native{interval: interval})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	return server.Serve(lis)
}

func (native) Echo(_ context.Context, in *faultsv1.NativeEchoRequest) (*faultsv1.NativeEchoResponse, error) {
	return &faultsv1.NativeEchoResponse{Number: in.GetNumber(), Program: uint32(os.Getpid())}, nil
}

func (n native) WatchTick(_ *faultsv1.NativeWatchTickRequest, s grpc.ServerStreamingServer[faultsv1.NativeWatchTickResponse]) error {
	ticker := time.NewTicker(n.interval)
	defer ticker.Stop()
	for i := uint32(1); ; i++ {
		if err := s.Send(&faultsv1.NativeWatchTickResponse{Number: i}); err != nil {
			return err
		}
		select {
		case <-s.Context().Done():
			return s.Context().Err()
		case <-ticker.C:
		}
	}
}
