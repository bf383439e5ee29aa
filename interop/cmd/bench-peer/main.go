// Bench-peer is what is measured: services on our SOME/IP stack, a plain gRPC
// service, and the floors of bare UDP.
//
//	bench-peer someip          0x6001.0x0001, with the variables of a vehicle
//	bench-peer shared          the same, and 0x6001.0x0003 whose messages share datagrams
//	bench-peer grpc SOCKET     bench.v1.Plain on a Unix socket
//	bench-peer echo ADDRESS    UDP datagrams go back to where they came from
//	bench-peer flood ADDRESS SIZE COUNT   UDP datagrams by sendmmsg, once a line is read
//	bench-peer beat ADDRESS GROUP   says something to the group each second, and hears it
//	bench-peer offer COUNT     as many instances, with the variables of a vehicle
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/interop/stackbench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	profiled, err := stackbench.Profile()
	if err == nil {
		err = errors.Join(run(ctx, os.Args[1:]), profiled())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch {
	case command == "someip" && len(args) == 1:
		return serveSOMEIP(ctx, false)
	case command == "shared" && len(args) == 1:
		return serveSOMEIP(ctx, true)
	case command == "grpc" && len(args) == 2:
		return serveGRPC(ctx, args[1])
	case command == "echo" && len(args) == 2:
		return serveEcho(ctx, args[1])
	case command == "flood" && len(args) == 4:
		return flood(ctx, args[1], args[2], args[3])
	case command == "beat" && len(args) == 3:
		return beat(ctx, args[1], args[2])
	case command == "offer" && len(args) == 2:
		return offerMany(ctx, args[1])
	}
	return errors.New("usage: bench-peer someip | shared | grpc SOCKET | echo ADDRESS | flood ADDRESS SIZE COUNT | beat ADDRESS GROUP | offer COUNT")
}

type plain struct {
	benchv1.UnimplementedPlainServer
}

func (plain) Echo(_ context.Context, in *benchv1.PlainEchoRequest) (*benchv1.PlainEchoResponse, error) {
	return &benchv1.PlainEchoResponse{Value: in.GetValue()}, nil
}

// Ticks sends as fast as flow control lets it.
func (plain) Ticks(in *benchv1.PlainTicksRequest, stream grpc.ServerStreamingServer[benchv1.PlainTicksResponse]) error {
	for i := range in.GetCount() {
		if err := stream.Send(&benchv1.PlainTicksResponse{Number: i, Rest: 1}); err != nil {
			return err
		}
	}
	return nil
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
