package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/mesh/gateway"
)

// gatewayStatus prints what a gateway knows of itself.
func (m *meshCommand) gatewayStatus(cmd *cobra.Command, state string) error {
	s, err := gateway.FetchStatus(cmd.Context(), state)
	if err != nil {
		return err
	}
	out := m.out
	return out.print(cmd, s, func(t *table) {
		gatewayTable(t, s)
		t.line("")
		instancesTable(t, s)
		countersTable(t, s)
	})
}

func gatewayTable(t *table, s *gateway.Status) {
	t.row("PART", "OF "+s.Node, "STATE", "SINCE", "REASON")
	t.row("gateway", s.NodeID, "up", ago(stamp(s.Started)), "")
	t.row("control plane", s.ControlPlane.Address, upWord(s.ControlPlane.Connected), ago(stamp(s.ControlPlane.Since)), s.ControlPlane.Reason)
	t.row("envoy", fmt.Sprintf("%s, pid %d", s.Envoy.Version, s.Envoy.PID), string(s.Envoy.Phase), ago(stamp(s.Envoy.Since)), s.Envoy.Reason)
	t.row("ads", "", upWord(s.ADS.Connected), ago(stamp(s.ADS.Since)), "")
	for _, n := range s.Networks {
		t.row("network", n.Name+" "+n.Address, upWord(n.Up), ago(stamp(n.Since)), n.Reason)
	}
	for _, r := range s.ControlPlane.Refused {
		t.row("instance", r.GetName(), "refused", "", r.GetReason())
	}
}

func instancesTable(t *table, s *gateway.Status) {
	t.row("INSTANCE", "FROM", "STATE", "SINCE", "REASON")
	instances := slices.Clone(s.Instances)
	slices.SortStableFunc(instances, func(a, b gateway.InstanceStatus) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
	for _, in := range instances {
		t.row(in.Name, in.From, upWord(in.Up), ago(stamp(in.Since)), in.Reason)
		for _, x := range in.Exposures {
			t.row("  on "+x.On, "", x.State, ago(stamp(x.Since)), x.Reason)
		}
	}
}

func upWord(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// stamp leaves a time that never was out.
func stamp(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}
