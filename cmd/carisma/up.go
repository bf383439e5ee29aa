package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
	"carisma.dev/gateway/vehicles/scenario"
)

// upCommand runs a vehicle on this machine.
type upCommand struct {
	namespaces bool
	peers      string
	scenario   bool
	check      bool
	state      string
	envoy      string
}

func newUp() *cobra.Command {
	var u upCommand
	cmd := &cobra.Command{
		Use:   "up VEHICLE",
		Short: "Run a whole vehicle on this machine",
		Long: `Up runs the vehicle whose vehicle.yaml is in the directory VEHICLE: every HPC
with its gateway and proxy, the control plane, and the components. It stays up
until it is interrupted.

Hosts are addresses of 127/8, or with --netns network namespaces; those need
root or, for other users, user namespaces.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error { return u.run(cmd, a[0]) },
	}
	cmd.Flags().BoolVar(&u.namespaces, "netns", false, "give each host a network namespace")
	cmd.Flags().StringVar(&u.peers, "peers", "", "implementation `name` of components that have one so called, such as vsomeip")
	cmd.Flags().BoolVar(&u.scenario, "scenario", false, "play the vehicle's scenario")
	cmd.Flags().BoolVar(&u.check, "check", false, "play the scenario and end; fail if a step does not hold")
	cmd.Flags().StringVar(&u.state, "state", "", "`directory` for logs, sockets and state (default a new temporary one, removed at the end)")
	cmd.Flags().StringVar(&u.envoy, "envoy", os.Getenv(envoyVariable), "`path` of Envoy (default $"+envoyVariable+", then PATH)")
	return cmd
}

func (u *upCommand) run(cmd *cobra.Command, dir string) (err error) {
	v, s, err := u.load(dir)
	if err != nil {
		return err
	}
	if u.namespaces {
		if ran, status, err := hosts.EnterUserNamespace(); err != nil {
			return err
		} else if ran {
			return exitError(status)
		}
	}
	// Nothing starts without a proxy.
	if u.envoy, _, err = envoy.Find(cmd.Context(), u.envoy); err != nil {
		return err
	}
	options, cleanUp, err := u.options(v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanUp(err)) }()
	r, err := run.New(v, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Start(); err != nil {
		return err
	}
	if s != nil {
		if err := u.play(cmd, r, s); err != nil {
			return err
		}
	}
	if u.check {
		return nil
	}
	if err := describe(cmd.Context(), cmd.OutOrStdout(), r); err != nil && cmd.Context().Err() == nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

// load reads the vehicle, everything that it names, and its scenario: nothing
// starts when something in a file is wrong.
func (u *upCommand) load(dir string) (*vehicles.Vehicle, *scenario.Scenario, error) {
	var c checker
	c.path(dir)
	var errs []error
	for _, p := range c.problems {
		if p.Severity == "error" {
			errs = append(errs, errors.New(p.Text))
		}
	}
	if len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	v, err := vehicles.Load(dir)
	if err != nil || !u.scenario && !u.check {
		return v, nil, err
	}
	if v.Scenario == "" {
		return nil, nil, fmt.Errorf("%s names no scenario", filepath.Join(dir, vehicles.FileName))
	}
	s, err := scenario.Load(filepath.Join(dir, v.Scenario), v)
	return v, s, err
}

// options returns how the vehicle is run, and what to do at the end: a temporary
// directory is removed unless something failed.
func (u *upCommand) options(v *vehicles.Vehicle) (o run.Options, cleanUp func(error) error, err error) {
	o = run.Options{Namespaces: u.namespaces, Peers: u.peers, Envoy: u.envoy, Dir: u.state}
	if o.Carisma, err = os.Executable(); err != nil {
		return o, nil, err
	}
	if o.Dir != "" {
		o.Dir, err = filepath.Abs(o.Dir)
		return o, func(error) error { return nil }, err
	}
	if o.Dir, err = os.MkdirTemp("", "carisma-"+v.Name+"-"); err != nil {
		return o, nil, err
	}
	return o, func(failure error) error {
		if failure != nil {
			return fmt.Errorf("logs are in %s", o.Dir)
		}
		return os.RemoveAll(o.Dir)
	}, nil
}

func (u *upCommand) play(cmd *cobra.Command, r *run.Runner, s *scenario.Scenario) error {
	p := scenario.NewPlayer(r, cmd.OutOrStdout())
	err := p.Play(cmd.Context(), s)
	return errors.Join(err, p.Close())
}

// describe shows what the mesh has and how to go on by hand.
func describe(ctx context.Context, w io.Writer, r *run.Runner) error {
	central := r.Vehicle().Central().Name
	conn, err := r.Host(central).NewClient(r.ControlPlane())
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	services, routes, err := askServices(ctx, conn, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printTable(w, func(t *table) { servicesTable(t, services.GetServices(), routes) }); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nLogs and state are in %s. Try, in another terminal:\n\n", filepath.Dir(r.Dir(central)))
	if r.Namespaces() {
		fmt.Fprintf(w, "  grpcurl -plaintext -unix %s list\n", r.EgressSocket(central))
	} else {
		fmt.Fprintf(w, "  grpcurl -plaintext %s list\n", r.Egress(central))
		fmt.Fprintf(w, "  %s services --central %s\n", os.Args[0], r.ControlPlane())
	}
	fmt.Fprintln(w, "\nEnd with Ctrl-C.")
	return nil
}
