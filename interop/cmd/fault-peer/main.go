// Fault-peer is every program of the fault runner's vehicle.
//
//	fault-peer ecu --instance N    faults.v1.Probe over SOME/IP
//	fault-peer native              faults.v1.Native over gRPC
//	fault-peer client              a SOME/IP client of faults.v1.Native, instance center,
//	                               that writes a line for each call and event; with
//	                               --service 0x4101 of faults.v1.Probe, instance a
//
// Where they are comes from the variables that the runner of a vehicle gives them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fault-peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: fault-peer ecu|native|client")
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	instance := flags.Uint("instance", 1, "instance id of an ecu")
	service := flags.Uint("service", nativeID, "service id that a client calls")
	interval := flags.Duration("interval", 20*time.Millisecond, "time between two Tick events, or calls of a client")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "ecu":
		return serveECU(ctx, uint16(*instance), *interval, log)
	case "native":
		return serveNative(ctx, os.Getenv("CARISMA_LISTEN"), *interval)
	case "client":
		return callService(ctx, uint16(*service), *interval, log)
	}
	return fmt.Errorf("%q is none of ecu, native, client", args[0])
}
