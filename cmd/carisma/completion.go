package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
)

// completeTimeout bounds what a shell waits for: no completion is better than a
// late one.
const completeTimeout = 500 * time.Millisecond

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeOwn completes the native services of the gateway.
func (g *gatewayCommand) completeOwn(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 || g.state == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	s, err := gateway.FetchStatus(ctx, g.state)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, in := range s.Instances {
		names = append(names, in.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// complete completes the first argument with names that the control plane knows.
func (m *meshCommand) complete(names func(context.Context, *grpc.ClientConn) []string) completion {
	return func(cmd *cobra.Command, given []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		if len(given) == 0 {
			// Without an answer there is nothing to complete.
			_ = m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
				ctx, cancel := context.WithTimeout(ctx, completeTimeout)
				defer cancel()
				found = names(ctx, conn)
				return nil
			})
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func nodeNames(ctx context.Context, conn *grpc.ClientConn) (names []string) {
	r, err := meshv1.NewNodeRegistryClient(conn).ListNodes(ctx, &meshv1.ListNodesRequest{})
	if err != nil {
		return nil
	}
	for _, n := range r.GetNodes() {
		names = append(names, n.GetName())
	}
	return names
}

func serviceNames(ctx context.Context, conn *grpc.ClientConn) (names []string) {
	r, err := meshv1.NewServiceRegistryClient(conn).ListServices(ctx, &meshv1.ListServicesRequest{})
	if err != nil {
		return nil
	}
	for _, s := range r.GetServices() {
		names = append(names, s.GetService().GetName())
	}
	return names
}
