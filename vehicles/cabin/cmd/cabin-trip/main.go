// Cabin-trip is the trip computer of the sample vehicle: a gRPC service like any
// other. It links nothing of the gateway (CAR-57).
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"carisma.dev/gateway/vehicles/cabin/gen/tripv1"
)

func main() {
	listen := flag.String("listen", os.Getenv("CARISMA_LISTEN"), "host:port to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "cabin-trip:", err)
		os.Exit(1)
	}
}

// stopTimeout bounds how long open streams may hold up the end of the program.
const stopTimeout = time.Second

func serve(ctx context.Context, address string) error {
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	tripv1.RegisterTripComputerServer(server, &tripComputer{})
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	go func() {
		<-ctx.Done()
		// A watch never ends by itself, so a graceful stop alone would not return.
		kill := time.AfterFunc(stopTimeout, server.Stop)
		defer kill.Stop()
		server.GracefulStop()
	}()
	return server.Serve(lis)
}
