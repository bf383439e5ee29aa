package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"carisma.dev/gateway/mesh/api/meshv1"
)

const (
	// ackTimeout is how long a step waits for the proxies of the mesh.
	ackTimeout = 2 * time.Second
	// settleTime is how long calls may still come after the proxies acknowledged:
	// their workers lag by a moment.
	settleTime = 10 * time.Millisecond
	// idleInterval is how often the proxy is asked for calls in flight.
	idleInterval = 20 * time.Millisecond
)

// arrive reports until a service that was added is healthy and every connected
// proxy has it.
func (g *gateway) arrive(ctx context.Context, s *native, report func(Step)) error {
	for {
		g.natives.mu.Lock()
		state := s.state
		g.natives.mu.Unlock()
		if state.Up {
			break
		}
		if !pause(ctx, idleInterval) {
			return fmt.Errorf("%s does not answer: %s", nameOf(s.Service), state.Reason)
		}
	}
	report(Step{Name: "healthy"})
	return g.acknowledged(ctx, nameOf(s.Service), "announced", report)
}

// acknowledged tells the control plane what changed and waits until every
// connected proxy has taken it.
func (g *gateway) acknowledged(ctx context.Context, name, step string, report func(Step)) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout+flushTime)
	defer cancel()
	if err := g.agent.Flush(ctx); err != nil {
		return fmt.Errorf("%s: the control plane does not answer: %w", step, err)
	}
	for _, r := range g.agent.Status().Refused {
		if r.GetName() == name {
			return fmt.Errorf("%s: the control plane refuses %s: %s", step, name, r.GetReason())
		}
	}
	resp, err := meshv1.NewServiceRegistryClient(g.agent).AwaitProxies(ctx, &meshv1.AwaitProxiesRequest{
		Name: name, Timeout: durationpb.New(ackTimeout),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	report(Step{Name: step, Detail: "acknowledged by the proxies of " + list(resp.GetAcknowledged()), Late: resp.GetLate()})
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "no node"
	}
	return strings.Join(names, ", ")
}

// remove takes an instance out of the mesh.
func (g *gateway) remove(r *http.Request, report func(Step)) error {
	name := strings.ToLower(r.PathValue("name"))
	drain, err := duration(r, "drain")
	if err != nil {
		return err
	}
	if g.native(name) == nil {
		if n := g.bridgedOn(name); n != nil {
			return g.handOver(r.Context(), n, name, drain, report)
		}
		return fmt.Errorf("this node has no service %s; it has: %s", name, list(g.names()))
	}
	if drain > 0 {
		err := g.drain(r.Context(), name, drain, report)
		if err != nil {
			g.agent.Leave(name, meshv1.Leaving_STAYS)
			return fmt.Errorf("given up, %s stays: %w", name, err)
		}
	}
	if err := g.removeNative(name); err != nil {
		return err
	}
	if !g.agent.Status().Connected {
		report(Step{Name: "removed", Detail: "the control plane is away and will be told"})
		return nil
	}
	return g.acknowledged(r.Context(), name, "removed", report)
}

func (g *gateway) names() []string {
	var names []string
	for _, s := range g.nativeStatus() {
		names = append(names, s.Name)
	}
	for _, b := range g.table.Plan() {
		if b.Up && !b.FromMesh() {
			names = append(names, b.MeshName())
		}
	}
	slices.Sort(names)
	return names
}

// bridgedOn returns the network that an instance was imported from, nil if none.
func (g *gateway) bridgedOn(name string) *network {
	for _, b := range g.table.Plan() {
		if !b.Up || b.FromMesh() || b.MeshName() != name {
			continue
		}
		for _, n := range g.networks {
			if n.on() == b.Via {
				return n
			}
		}
	}
	return nil
}

// handOver leaves a bridged instance to another gateway that sees it, until this
// one starts anew. Its watches, which would never end, end with UNAVAILABLE once
// the other serves it: clients open them again there.
func (g *gateway) handOver(ctx context.Context, n *network, name string, drain time.Duration, report func(Step)) error {
	successor := g.catalogue.successor(name)
	if successor == "" {
		return fmt.Errorf("no other gateway sees %s: it stays", name)
	}
	if drain > 0 {
		if err := g.drain(ctx, name, drain, report); err != nil {
			g.agent.Leave(name, meshv1.Leaving_STAYS)
			return fmt.Errorf("given up, %s stays: %w", name, err)
		}
	}
	if err := n.withdraw(ctx, withdrawal{name: name, reason: "moved to node " + successor}); err != nil {
		g.agent.Leave(name, meshv1.Leaving_STAYS)
		return fmt.Errorf("given up, %s stays: %w", name, err)
	}
	return g.acknowledged(ctx, name, "removed", report)
}

// drain is what a move does before the old instance goes (CAR-31, 43): when every
// proxy has the new one, new calls go there; what runs here may end; then nothing
// leads here any more. The node's own ingress serves it until it is removed.
func (g *gateway) drain(ctx context.Context, name string, patience time.Duration, report func(Step)) error {
	successor := g.catalogue.successor(name)
	if successor != "" {
		if err := g.acknowledged(ctx, name, "successor", report); err != nil {
			return err
		}
		g.agent.Leave(name, meshv1.Leaving_LEAVING_DRAINING)
		if err := g.acknowledged(ctx, name, "draining", report); err != nil {
			return err
		}
	} else {
		report(Step{Name: "no successor", Detail: "callers will be told that it is gone"})
		g.agent.Leave(name, meshv1.Leaving_LEAVING_WITHDRAWN)
		if err := g.acknowledged(ctx, name, "withdrawn", report); err != nil {
			return err
		}
	}
	running, err := g.idle(ctx, name, patience)
	if err != nil {
		return err
	}
	detail := "no call is in flight"
	if running > 0 {
		detail = fmt.Sprintf("%d calls and streams still run after %v: they end now, or with a native service", running, patience)
	}
	report(Step{Name: "drained", Detail: detail})
	if successor == "" {
		return nil
	}
	g.agent.Leave(name, meshv1.Leaving_LEAVING_WITHDRAWN)
	return g.acknowledged(ctx, name, "withdrawn", report)
}

// idle waits until the proxy of this node has no call of a service in flight, or
// patience is over, and returns how many there are.
func (g *gateway) idle(ctx context.Context, name string, patience time.Duration) (int, error) {
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(idleInterval)
	defer tick.Stop()
	if !pause(ctx, settleTime) {
		return 0, context.Cause(ctx)
	}
	for {
		n, err := g.supervisor.Admin().RequestsTo(ctx, name+"/in", name+"/local")
		if err != nil {
			return 0, errors.Join(errors.New("the proxy does not tell what is in flight"), err)
		}
		if n == 0 {
			return 0, nil
		}
		select {
		case <-tick.C:
		case <-over.C:
			return n, nil
		case <-ctx.Done():
			return n, context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
