// Bench-peer is an echo service to measure with: on our SOME/IP stack or as a
// plain gRPC service.
//
//	bench-peer someip          0x6001.0x0001, with the variables of a vehicle
//	bench-peer grpc SOCKET     bench.v1.Plain on a Unix socket
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "someip":
		err = serveSOMEIP(ctx)
	case len(os.Args) == 3 && os.Args[1] == "grpc":
		err = serveGRPC(ctx, os.Args[2])
	default:
		err = errors.New("usage: bench-peer someip | bench-peer grpc SOCKET")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-peer:", err)
		os.Exit(1)
	}
}

func serveSOMEIP(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	stack, network, err := component.Start(runtime.Range{First: 0x1400, Last: 0x14ff}, log)
	if err != nil {
		return err
	}
	echo := func(_ context.Context, r *runtime.Request) {
		_ = r.Respond(r.Payload) // an answer that is lost is the client's time-out
	}
	_, err = network.Offer(runtime.ServiceConfig{
		Service: 0x6001, Instance: 1, Major: 1, UDPPort: 30600, TCPPort: 30600,
		Handler: runtime.HandlerFunc(echo),
	})
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stack.Close())
}

type plain struct {
	benchv1.UnimplementedPlainServer
}

func (plain) Echo(_ context.Context, in *benchv1.PlainEchoRequest) (*benchv1.PlainEchoResponse, error) {
	return &benchv1.PlainEchoResponse{Value: in.GetValue()}, nil
}

func serveGRPC(ctx context.Context, socket string) error {
	lis, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	benchv1.RegisterPlainServer(server, plain{})
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	return server.Serve(lis)
}
