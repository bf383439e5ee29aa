package main

import (
	"context"
	"fmt"
	"path"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"carisma.dev/gateway/mesh/api/meshv1"
)

func newStatus() *cobra.Command {
	var m meshCommand
	var state string
	cmd := &cobra.Command{
		Use: "status", Short: "Show what each proxy was sent and what it took", Args: args(cobra.NoArgs),
		Long: `Status shows each proxy that is connected to the control plane and, for each
type of resource, how many it was sent, the version sent and the version it
acknowledged, and every resource that it refused, with the reason; then how many
requests, streams and resources were refused since the control plane started.

With --state it shows what the gateway of this HPC knows of itself: its proxy, its
networks, the instances that it sees and where it exposes them, or why not, and
what of each network it could not use or would not answer.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if state != "" {
				return m.gatewayStatus(cmd, state)
			}
			return m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
				r, err := meshv1.NewStatusClient(conn).GetProxies(ctx, &meshv1.GetProxiesRequest{})
				if err != nil {
					return err
				}
				return m.printProto(cmd, r, func(t *table) {
					proxiesTable(t, r.GetProxies())
					refusedTable(t, r.GetCounters())
				})
			})
		},
	}
	m.flags(cmd)
	cmd.Flags().StringVar(&state, "state", "", "state `directory` of a gateway on this HPC")
	return cmd
}

func proxiesTable(t *table, proxies []*meshv1.Proxy) {
	t.row("PROXY OF", "TYPE", "RESOURCES", "SENT", "ACKNOWLEDGED", "LAST SENT", "STATE")
	for _, p := range proxies {
		for _, r := range p.GetTypes() {
			state := "ok"
			switch {
			case len(r.GetNacks()) > 0:
				state = fmt.Sprintf("%d refused", len(r.GetNacks()))
			case r.GetSentVersion() != r.GetAckedVersion():
				state = "waiting"
			}
			t.row(p.GetNodeName(), typeName(r.GetTypeUrl()), fmt.Sprint(r.GetResources()),
				r.GetSentVersion(), r.GetAckedVersion(), ago(r.GetSent()), state)
		}
	}
	for _, p := range proxies {
		for _, r := range p.GetTypes() {
			for _, n := range r.GetNacks() {
				t.line(fmt.Sprintf("%s refuses %s %s since %s: %s", p.GetNodeName(), typeName(r.GetTypeUrl()), n.GetResource(), ago(n.GetSince()), n.GetReason()))
			}
		}
	}
}

// typeName is the last part of a type URL: Cluster, Listener and so on.
func typeName(url string) string {
	name := path.Ext(url)
	if name == "" {
		return url
	}
	return name[1:]
}
