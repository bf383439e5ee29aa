package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/mesh/gateway"
)

// connected waits until every gateway and proxy that lost the control plane has it, and
// notes how long after its start that was.
func (g *Rig) connected(ctx context.Context, s *Step, start time.Time, r *Result) error {
	within := s.Connected
	r.ConnectedBound = ms(within)
	ctx, cancel := context.WithTimeout(ctx, calmAfter)
	defer cancel()
	for {
		nodes, err := g.nodes(ctx)
		if err != nil {
			return err
		}
		all, last := true, start
		for name, n := range nodes {
			if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, name) {
				continue
			}
			all = all && n.ControlPlane.Connected && n.ADS.Connected
			for _, since := range []time.Time{n.ControlPlane.Since, n.ADS.Since} {
				all = all && since.After(start)
				if since.After(last) {
					last = since
				}
			}
		}
		if all {
			if r.Connected = ms(last.Sub(start)); last.Sub(start) > within {
				return fmt.Errorf("all are connected after %.0f ms", r.Connected)
			}
			return nil
		}
		if err := wait.For(ctx, lookInterval); err != nil {
			return errors.New("not all have the control plane again")
		}
	}
}

// nodes returns what every gateway says of itself.
func (g *Rig) nodes(ctx context.Context) (map[string]*gateway.Status, error) {
	all := map[string]*gateway.Status{}
	for _, h := range g.runner.Vehicle().HPCs() {
		st, err := gateway.FetchStatus(ctx, g.state(h.Name))
		if err != nil {
			return nil, err
		}
		all[h.Name] = st
	}
	return all, nil
}
