package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	grpcstatus "google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
)

func newWhy() *cobra.Command {
	var m meshCommand
	var states []string
	var egress string
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Walk the path of a service and name the broken link", Args: args(cobra.ExactArgs(1)),
		Long: `Why walks from where a service is seen to where it is called: the offer in
service discovery or the health of a native service, the registry, the node's
lease, the view of every node, what the proxies were sent and took, and a call.
NAME is a mesh name, as carisma services prints it.

The control plane knows all but the ends. --state DIR adds what a gateway on this
HPC sees itself, and --egress a health check through an egress listener. The exit
status is 1 if a link is broken.`,
		RunE: func(cmd *cobra.Command, a []string) error {
			f := facts{name: strings.ToLower(a[0])}
			if err := m.ask(cmd, f.fromCentral); err != nil {
				return err
			}
			for _, dir := range states {
				s, err := gateway.FetchStatus(cmd.Context(), dir)
				if err != nil {
					return err
				}
				f.gateways = append(f.gateways, s)
			}
			if egress != "" {
				f.call = callThrough(cmd.Context(), egress, f.name)
			}
			links := f.explain()
			out := m.out
			if err := out.print(cmd, links, func(t *table) { linksTable(t, links) }); err != nil {
				return err
			}
			for _, l := range links {
				if l.State == broken {
					return exitError(statusFailed)
				}
			}
			return nil
		},
		ValidArgsFunction: m.complete(serviceNames),
	}
	m.flags(cmd)
	cmd.Flags().StringArrayVar(&states, "state", nil, "state `directory` of a gateway to ask too; may be repeated")
	cmd.Flags().StringVar(&egress, "egress", "", "egress `address` to call through")
	return cmd
}

// facts is what is known of a service.
type facts struct {
	name     string
	nodes    []*meshv1.Node
	services []*meshv1.MeshService // all of the mesh
	routes   []*meshv1.NodeRoutes
	proxies  []*meshv1.Proxy
	gateways []*gateway.Status
	call     *link // nil if nobody called
}

func (f *facts) fromCentral(ctx context.Context, conn *grpc.ClientConn) error {
	nodes, err := meshv1.NewNodeRegistryClient(conn).ListNodes(ctx, &meshv1.ListNodesRequest{})
	if err != nil {
		return err
	}
	services, routes, err := askServices(ctx, conn)
	if err != nil {
		return err
	}
	proxies, err := meshv1.NewStatusClient(conn).GetProxies(ctx, &meshv1.GetProxiesRequest{})
	if err != nil {
		return err
	}
	f.nodes, f.services, f.routes, f.proxies = nodes.GetNodes(), services.GetServices(), routes, proxies.GetProxies()
	return nil
}

// callThrough asks for the health of a service through an egress, as a caller
// would. A service without a health service answers too, if not about its health.
func callThrough(ctx context.Context, egress, name string) *link {
	l := &link{Link: "call", Of: "egress " + egress, State: broken}
	conn, err := grpc.NewClient(egress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.Detail = err.Error()
		return l
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.CallAuthority(name))
	switch code := grpcstatus.Code(err).String(); {
	case err == nil && r.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING:
		l.State, l.Detail = whole, "it answers"
	case err == nil:
		l.Detail = "it says " + r.GetStatus().String()
	case code == "Unimplemented":
		l.State, l.Detail = whole, "it answers, and has no health service"
	default:
		l.Detail = fmt.Sprintf("%s: %s", code, grpcstatus.Convert(err).Message())
	}
	return l
}

func linksTable(t *table, links []link) {
	t.row("LINK", "OF", "STATE", "WHAT IS THERE")
	for _, l := range links {
		t.row(l.Link, l.Of, string(l.State), l.Detail)
	}
	for _, l := range links {
		if l.State == broken {
			t.line(fmt.Sprintf("\nThe first broken link is %s of %s: %s", l.Link, l.Of, l.Detail))
			return
		}
	}
}
