package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/gateway"
)

// addService is the first half of a move: when it returns, the service is healthy
// and every HPC has a way to it.
func (p *Player) addService(ctx context.Context, a *AddService) ([]string, error) {
	component := p.runner.Vehicle().Component(a.Component)
	if component == nil {
		return nil, fmt.Errorf("there is no component %q", a.Component)
	}
	s := config.Service{Interface: a.Interface, Instance: a.Instance, Address: p.runner.Listen(component)}
	return steps(func(report func(gateway.Step)) error {
		deadline, _ := ctx.Deadline()
		return gateway.AddService(ctx, p.runner.State(component.Host), s, time.Until(deadline), report)
	})
}

// removeService with drain is the second half of a move (CAR-31, 43).
func (p *Player) removeService(ctx context.Context, r *RemoveService) ([]string, error) {
	return steps(func(report func(gateway.Step)) error {
		return gateway.RemoveService(ctx, p.runner.State(r.Host), r.Service, r.Drain, report)
	})
}

// steps runs a change and returns its steps as a line. What differs from run to
// run, times and addresses, is left out.
func steps(change func(report func(gateway.Step)) error) ([]string, error) {
	var names, late []string
	err := change(func(s gateway.Step) {
		names = append(names, s.Name)
		late = append(late, s.Late...)
	})
	switch {
	case err != nil:
		return nil, err
	case len(late) > 0:
		return nil, fmt.Errorf("the proxies of %s did not acknowledge in time", strings.Join(late, ", "))
	}
	return []string{"→ " + strings.Join(names, ", ")}, nil
}
