package faults

import (
	"context"
	"errors"
	"fmt"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
)

// add adds a native service to a node, and waits until all proxies have it.
func (g *Rig) add(ctx context.Context, s *Service) error {
	service := config.Service{Interface: s.Interface, Instance: s.Instance, Address: s.Address}
	return g.change(s, func(told func(gateway.Step)) error {
		return gateway.AddService(ctx, g.state(s.Host), service, calmAfter, told)
	})
}

// remove takes a native service from a node, without a failed call.
func (g *Rig) remove(ctx context.Context, s *Service) error {
	return g.change(s, func(told func(gateway.Step)) error {
		return gateway.RemoveService(ctx, g.state(s.Host), s.Name, s.Drain, told)
	})
}

// change changes a node's services: every proxy has to acknowledge each step.
func (g *Rig) change(s *Service, do func(func(gateway.Step)) error) error {
	var late error
	err := do(func(step gateway.Step) {
		if len(step.Late) > 0 {
			late = fmt.Errorf("%s at %s: %s: %v did not acknowledge", s.Name, s.Host, step.Name, step.Late)
		}
	})
	return errors.Join(err, late)
}
