package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
)

// stateVariable names the state directory of the gateway that commands ask.
const stateVariable = "CARISMA_STATE"

// gatewayCommand is a command that asks the gateway of this HPC.
type gatewayCommand struct {
	state string
	out   output
}

func (g *gatewayCommand) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.state, "state", os.Getenv(stateVariable), "state `directory` of the gateway (default $"+stateVariable+")")
	g.out.flag(cmd)
}

func (g *gatewayCommand) check() error {
	if g.state == "" {
		return usageError{fmt.Errorf("which gateway? give --state DIR, the state directory of its node file, or set %s", stateVariable)}
	}
	return nil
}

// steps runs a change and prints each step as it is done.
func (g *gatewayCommand) steps(cmd *cobra.Command, run func(context.Context, func(gateway.Step)) error) error {
	if err := g.check(); err != nil {
		return err
	}
	late := false
	err := run(cmd.Context(), func(s gateway.Step) {
		late = late || len(s.Late) > 0
		g.step(cmd, s)
	})
	if err == nil && late {
		return errors.New("some proxies did not acknowledge in time: carisma status and carisma why show them")
	}
	return err
}

func (g *gatewayCommand) step(cmd *cobra.Command, s gateway.Step) {
	if g.out.json() {
		_ = printJSON(cmd.OutOrStdout(), s) // an output that is gone does not stop a change
		return
	}
	line := fmt.Sprintf("%s  %-13s %s", s.At.Local().Format("15:04:05.000"), s.Name, s.Detail)
	if len(s.Late) > 0 {
		line += "; late: " + strings.Join(s.Late, ", ")
	}
	fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(line, " "))
}

func newService() *cobra.Command {
	cmd := &cobra.Command{
		Use: "service", Short: "Add a native gRPC service to this HPC, or remove it",
		Long: `Service changes the list of native gRPC services of one HPC, over restarts of its
gateway. Only the gateway of the HPC owns that list, so the commands go to its
admin socket and run on the HPC.

A service moves in two halves, and no call fails: add it on the HPC where it
comes, then remove it with --drain on the HPC where it was, then stop it there.`,
	}
	cmd.AddCommand(newServiceAdd(), newServiceRemove())
	return cmd
}

func newServiceAdd() *cobra.Command {
	var g gatewayCommand
	var s config.Service
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "add INTERFACE ADDRESS", Short: "Add a service that listens at an address", Args: args(cobra.ExactArgs(2)),
		Example: "  carisma service add cabin.trip.v1.TripComputer 127.0.0.1:50051 --state /var/lib/carisma",
		Long: `Add makes the gRPC service at ADDRESS (address:port or unix:/path) an instance
of INTERFACE, and waits until it is healthy and every connected proxy of the mesh
has a path to it. It stays added if that takes longer.`,
		RunE: func(cmd *cobra.Command, a []string) error {
			s.Interface, s.Address = a[0], a[1]
			return g.steps(cmd, func(ctx context.Context, report func(gateway.Step)) error {
				return gateway.AddService(ctx, g.state, s, wait, report)
			})
		},
	}
	g.flags(cmd)
	cmd.Flags().StringVar(&s.Instance, "instance", "default", "`name` of the instance")
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Second, "wait so long for the proxies; 0 does not wait")
	return cmd
}

func newServiceRemove() *cobra.Command {
	var g gatewayCommand
	var drain bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove the instance with a mesh name", Args: args(cobra.ExactArgs(1)),
		Example: "  carisma service remove default.cabin.trip.v1.tripcomputer --drain --state /var/lib/carisma",
		Long: `Remove takes an instance of this HPC out of the mesh. With --drain new calls go
to the instance on another HPC first; calls that run have --drain-time to end;
then nothing leads here any more, and every step is acknowledged by all
connected proxies before the next. Streams that still run go on until the
service is stopped. If a step fails, the instance stays.

An instance of an ECU is left to another gateway on its network, if there is one:
its watches end with "moved". It stays there until this gateway starts anew.`,
		RunE: func(cmd *cobra.Command, a []string) error {
			if !drain {
				patience = 0
			} else if patience <= 0 {
				return usageError{errors.New("--drain-time: more than 0 is needed")}
			}
			return g.steps(cmd, func(ctx context.Context, report func(gateway.Step)) error {
				return gateway.RemoveService(ctx, g.state, a[0], patience, report)
			})
		},
		ValidArgsFunction: g.completeOwn,
	}
	g.flags(cmd)
	cmd.Flags().BoolVar(&drain, "drain", false, "let calls end, and have others take them, first")
	cmd.Flags().DurationVar(&patience, "drain-time", 10*time.Second, "how long calls may take to end")
	return cmd
}
