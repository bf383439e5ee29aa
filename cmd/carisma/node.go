package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/controlplane"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
)

// envoyVariable names the proxy's program.
const envoyVariable = "CARISMA_ENVOY"

// nodeFlags are those of the long-running commands.
type nodeFlags struct {
	config  string
	verbose bool
}

func (f *nodeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.config, "config", "c", "node.yaml", "node `file`")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "log more")
}

func (f *nodeFlags) load() (*config.Node, *slog.Logger, error) {
	n, err := config.Load(f.config)
	if err != nil {
		return nil, nil, err
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	return n, log.With("node", n.Name), nil
}

func newCentral() *cobra.Command {
	var f nodeFlags
	cmd := &cobra.Command{
		Use: "central", Short: "Run the control plane of the central HPC", Args: args(cobra.NoArgs),
		Long: `Central runs the control plane: node registry, service registry and the
configuration of every proxy. It listens where the node file's control_plane
says. The central HPC runs it beside the gateway, which is carisma node (CAR-1); satellites run that alone (CAR-2).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, log, err := f.load()
			if err != nil {
				return err
			}
			return controlplane.Run(cmd.Context(), controlplane.Config{
				Listen: n.ControlPlane,
				State:  filepath.Join(n.State, "central"),
				Logger: log,
			})
		},
	}
	f.flags(cmd)
	return cmd
}

func newNode() *cobra.Command {
	var f nodeFlags
	var envoy string
	cmd := &cobra.Command{
		Use: "node", Short: "Run the gateway of one HPC, with its proxy", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, log, err := f.load()
			if err != nil {
				return err
			}
			return gateway.Run(cmd.Context(), n, gateway.Options{EnvoyPath: envoy, Logger: log})
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&envoy, "envoy", os.Getenv(envoyVariable), "`path` of Envoy, in place of the node file's (default $"+envoyVariable+")")
	return cmd
}
