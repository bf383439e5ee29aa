package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// centralVariable names the control plane that commands ask.
const centralVariable = "CARISMA_CENTRAL"

// askTimeout bounds one question to the control plane.
const askTimeout = 5 * time.Second

// meshCommand is a command that asks the control plane.
type meshCommand struct {
	central string
	out     output
}

func (m *meshCommand) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.central, "central", os.Getenv(centralVariable), "`address` of the control plane (default $"+centralVariable+")")
	m.out.flag(cmd)
}

// ask connects and runs f.
func (m *meshCommand) ask(cmd *cobra.Command, f func(context.Context, *grpc.ClientConn) error) error {
	if m.central == "" {
		return usageError{fmt.Errorf("where is the control plane? give --central ADDRESS or set %s", centralVariable)}
	}
	conn, err := grpc.NewClient(m.central, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return usageError{fmt.Errorf("--central %s: %w", m.central, err)}
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
	defer cancel()
	if err := f(ctx, conn); err != nil {
		return fmt.Errorf("control plane at %s: %w", m.central, err)
	}
	return nil
}

// printProto prints a response as JSON, or what text writes.
func (m *meshCommand) printProto(cmd *cobra.Command, v proto.Message, text func(*table)) error {
	if !m.out.json() {
		return printTable(cmd.OutOrStdout(), text)
	}
	b, err := protojson.MarshalOptions{Multiline: true, EmitDefaultValues: true}.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", b)
	return err
}

func newNodes() *cobra.Command {
	var m meshCommand
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the nodes that are registered", Args: args(cobra.NoArgs), // CAR-9
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
				r, err := meshv1.NewNodeRegistryClient(conn).ListNodes(ctx, &meshv1.ListNodesRequest{})
				if err != nil {
					return err
				}
				return m.printProto(cmd, r, func(t *table) { nodesTable(t, r.GetNodes()) })
			})
		},
	}
	m.flags(cmd)
	return cmd
}

func nodesTable(t *table, nodes []*meshv1.Node) {
	t.row("NODE", "ROLE", "ADDRESS", "INGRESS", "STATE", "SINCE", "ID", "EPOCH")
	for _, n := range nodes {
		role := "satellite"
		if n.GetCentral() {
			role = "central"
		}
		t.row(n.GetName(), role, n.GetAddress(), fmt.Sprint(n.GetProxy().GetIngressPort()),
			stateWord(n.GetState().String()), ago(n.GetSince()), n.GetId(), fmt.Sprint(n.GetEpoch()))
	}
}

func newServices() *cobra.Command {
	var m meshCommand
	var w watchFlags
	cmd := &cobra.Command{
		Use: "services", Short: "List the service instances of the mesh", Args: args(cobra.NoArgs),
		Long: `Services lists every service instance: its interface, name, SOME/IP ids, the
mesh name (the authority under which the egress listeners route to it), its node,
the route that the central HPC has to it, and its state.

With --watch it prints each instance, then each change as it comes. It then asks
the gateway of an HPC, which goes on while the control plane is away.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.watch {
				return m.watchServices(cmd, w.egress)
			}
			return m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
				r, routes, err := askServices(ctx, conn)
				if err != nil {
					return err
				}
				return m.printProto(cmd, r, func(t *table) { servicesTable(t, r.GetServices(), routes) })
			})
		},
	}
	m.flags(cmd)
	w.flags(cmd)
	return cmd
}

// askServices asks the control plane for the services of the mesh and each node's
// routes to them.
func askServices(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) (*meshv1.ListServicesResponse, []*meshv1.NodeRoutes, error) {
	services, err := meshv1.NewServiceRegistryClient(conn).ListServices(ctx, &meshv1.ListServicesRequest{}, opts...)
	if err != nil {
		return nil, nil, err
	}
	routes, err := meshv1.NewStatusClient(conn).GetRoutes(ctx, &meshv1.GetRoutesRequest{}, opts...)
	return services, routes.GetNodes(), err
}

func servicesTable(t *table, services []*meshv1.MeshService, nodes []*meshv1.NodeRoutes) {
	slices.SortFunc(services, func(a, b *meshv1.MeshService) int {
		return cmp.Or(
			cmp.Compare(a.GetService().GetInterface(), b.GetService().GetInterface()),
			cmp.Compare(a.GetService().GetInstance(), b.GetService().GetInstance()),
			cmp.Compare(a.GetNodeName(), b.GetNodeName()))
	})
	t.row("INTERFACE", "INSTANCE", "SOME/IP", "MESH NAME", "NODE", "ROUTE", "STATE", "SINCE")
	for _, m := range services {
		s := m.GetService()
		ids := ""
		if o := s.GetOrigin(); o.GetServiceId() != 0 {
			ids = fmt.Sprintf("0x%04x.0x%04x", o.GetServiceId(), o.GetInstanceId())
		}
		state := stateWord(s.GetState().String())
		if s.GetReason() != "" {
			state += " (" + s.GetReason() + ")"
		}
		t.row(s.GetInterface(), s.GetInstance(), ids, s.GetName(), m.GetNodeName(), routeTo(s.GetName(), nodes), state, ago(s.GetSince()))
	}
}

// routeTo is the route of the first node, which is the central one.
func routeTo(name string, nodes []*meshv1.NodeRoutes) string {
	if len(nodes) == 0 {
		return ""
	}
	for _, r := range nodes[0].GetEgress() {
		if r.GetName() == name {
			return routeWord(r)
		}
	}
	return ""
}

func routeWord(r *meshv1.Route) string {
	word := stateWord(r.GetClass().String())
	if r.GetEndpoint() == "" {
		return word
	}
	return word + " " + r.GetEndpoint()
}

func newRoutes() *cobra.Command {
	var m meshCommand
	cmd := &cobra.Command{
		Use: "routes [NODE]", Short: "Show the ingress and egress view of each node", Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
				request := &meshv1.GetRoutesRequest{}
				if len(a) == 1 {
					request.Node = a[0]
				}
				r, err := meshv1.NewStatusClient(conn).GetRoutes(ctx, request)
				if err != nil {
					return err
				}
				return m.printProto(cmd, r, func(t *table) { routesTable(t, r.GetNodes()) })
			})
		},
		ValidArgsFunction: m.complete(nodeNames),
	}
	m.flags(cmd)
	return cmd
}

func routesTable(t *table, nodes []*meshv1.NodeRoutes) {
	t.row("NODE", "LISTENER", "MESH NAME", "CLASS", "ENDPOINT", "TARGET NODE")
	for _, n := range nodes {
		for _, view := range []struct {
			listener string
			routes   []*meshv1.Route
		}{{"ingress", n.GetIngress()}, {"egress", n.GetEgress()}} {
			for _, r := range view.routes {
				t.row(n.GetNodeName(), view.listener, r.GetName(), stateWord(r.GetClass().String()), r.GetEndpoint(), r.GetTargetNode())
			}
		}
	}
}

// stateWord makes a word of the name of an enum value: NODE_UP is up.
func stateWord(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "NODE_"), "INSTANCE_")
	return strings.ToLower(name)
}

// ago is how long ago something was, to a precision that a person reads.
func ago(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	d := time.Since(t.AsTime())
	switch {
	case d < time.Minute:
		return d.Round(100*time.Millisecond).String() + " ago"
	case d < time.Hour:
		return d.Round(time.Second).String() + " ago"
	default:
		return d.Round(time.Minute).String() + " ago"
	}
}
