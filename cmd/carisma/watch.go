package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// egressVariable names the egress listener that commands ask.
const egressVariable = "CARISMA_EGRESS"

// watchServices prints the instances of the mesh, then each change. It asks the
// gateway of an HPC through its egress, so that it goes on while the control plane
// is away (carisma.v1.Catalog).
func (m *meshCommand) watchServices(cmd *cobra.Command, egress string) error {
	if egress == "" {
		var err error
		if egress, err = m.centralEgress(cmd); err != nil {
			return err
		}
	}
	conn, err := grpc.NewClient(egress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return usageError{fmt.Errorf("--egress %s: %w", egress, err)}
	}
	defer conn.Close()
	stream, err := carismav1.NewCatalogClient(conn).Watch(cmd.Context(), &carismav1.CatalogWatchRequest{})
	if err != nil {
		return err
	}
	for {
		news, err := stream.Recv()
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("egress at %s: %w", egress, err)
		}
		if err := m.printNews(cmd, news); err != nil {
			return err
		}
	}
}

// centralEgress asks the control plane for the egress of the central HPC.
func (m *meshCommand) centralEgress(cmd *cobra.Command) (egress string, err error) {
	err = m.ask(cmd, func(ctx context.Context, conn *grpc.ClientConn) error {
		r, err := meshv1.NewNodeRegistryClient(conn).ListNodes(ctx, &meshv1.ListNodesRequest{})
		if err != nil {
			return err
		}
		for _, n := range r.GetNodes() {
			if p := n.GetProxy(); n.GetCentral() && p != nil {
				egress = net.JoinHostPort(p.GetEgressAddress(), fmt.Sprint(p.GetEgressPort()))
				return nil
			}
		}
		return errors.New("no central node is registered: give --egress")
	})
	return egress, err
}

func (m *meshCommand) printNews(cmd *cobra.Command, news *carismav1.CatalogWatchResponse) error {
	if m.out.json() {
		b, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(news)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", b)
		return err
	}
	line := func(at time.Time, word, name, node, reason string) error {
		text := fmt.Sprintf("%s  %-7s %s on %s", at.Local().Format("15:04:05.000"), word, name, node)
		if reason != "" {
			text += " (" + reason + ")"
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
		return err
	}
	for _, in := range news.GetSet() {
		word := "up"
		if in.GetState() != carismav1.CatalogState_CATALOG_UP {
			word = "down"
		}
		if err := line(in.GetSince().AsTime(), word, in.GetName(), in.GetNode(), in.GetReason()); err != nil {
			return err
		}
	}
	for _, k := range news.GetRemoved() {
		if err := line(time.Now(), "removed", k.GetName(), k.GetNode(), ""); err != nil {
			return err
		}
	}
	return nil
}

// watchFlags are those of a command that may watch.
type watchFlags struct {
	watch  bool
	egress string
}

func (w *watchFlags) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.watch, "watch", "w", false, "go on with each change")
	cmd.Flags().StringVar(&w.egress, "egress", os.Getenv(egressVariable),
		"egress `address` to watch through (default $"+egressVariable+", then the central HPC's)")
}
