// Carisma is the gateway and everything around it: one program whose commands
// run a vehicle or one HPC of it, show the mesh and speak its protocols by hand.
//
// Exit status: 0 if all went well, 1 if a command failed or what it judges does
// not hold, 2 if it was called wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := execute(ctx)
	stop()
	os.Exit(status)
}

// Exit statuses.
const (
	statusFailed = 1
	statusUsage  = 2
)

// usageError marks an error in the way the program was called.
type usageError struct{ error }

// exitError ends the program with a status and no further word.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func execute(ctx context.Context) int {
	err := newRoot().ExecuteContext(ctx)
	var exit exitError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "carisma: %v\n", err)
		return statusUsage
	default:
		fmt.Fprintf(os.Stderr, "carisma: %v\n", err)
		return statusFailed
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "carisma",
		Short:         "Gateway that makes SOME/IP and gRPC services one mesh",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "see", Title: "See the mesh:"},
		&cobra.Group{ID: "change", Title: "Change the mesh:"},
		&cobra.Group{ID: "speak", Title: "Speak a protocol by hand:"},
		&cobra.Group{ID: "files", Title: "Files:"},
	)
	for group, commands := range map[string][]*cobra.Command{
		"run":    {newUp(), newCentral(), newNode()},
		"see":    {newNodes(), newServices(), newRoutes(), newStatus(), newWhy()},
		"change": {newService()},
		"speak":  {newSomeip()},
		"files":  {newCheck()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion())
	return root
}

// args makes a wrong number of arguments an error of usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

func newVersion() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return out.print(cmd, struct {
				Version string `json:"version"`
			}{version}, func(t *table) { t.line("carisma " + version) })
		},
	}
	out.flag(cmd)
	return cmd
}
