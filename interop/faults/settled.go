package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// settled waits until one node alone serves an instance, others stand by, and
// nothing in the mesh changes for a time. Before the fault it decides which nodes are
// called owner and standby.
func (g *Rig) settled(ctx context.Context, s *Settled, fault time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, calmAfter)
	defer cancel()
	central := g.runner.Host(g.runner.Vehicle().Central().Name)
	conn, err := central.NewClient(g.runner.ControlPlane())
	if err != nil {
		return err
	}
	defer conn.Close()
	registry := meshv1.NewServiceRegistryClient(conn)
	var last []string
	var owners, standbys []string
	for since := time.Now(); ; {
		r, err := registry.ListServices(ctx, &meshv1.ListServicesRequest{})
		if err != nil {
			return fmt.Errorf("%s: %d serve it, %d stand by: %w", s.Name, len(owners), len(standbys), err)
		}
		var now []string
		now, owners, standbys = who(r.GetServices(), s.Name)
		if !slices.Equal(now, last) || len(owners) != 1 || len(standbys) != s.Standbys {
			last, since = now, time.Now()
		} else if time.Since(since) >= s.For {
			break
		}
		if err := wait.For(ctx, lookInterval); err != nil {
			return fmt.Errorf("%s does not settle: served by %v, on standby at %v", s.Name, owners, standbys)
		}
	}
	if fault.IsZero() {
		g.roles["owner"] = owners[0]
		if len(standbys) > 0 {
			g.roles["standby"] = standbys[0]
		}
	}
	return nil
}

// who lists all instances that are up, and the nodes that serve one and stand by.
func who(services []*meshv1.MeshService, name string) (all, owners, standbys []string) {
	for _, s := range services {
		if s.GetService().GetState() != meshv1.InstanceState_INSTANCE_UP {
			continue
		}
		all = append(all, fmt.Sprint(s.GetService().GetName(), s.GetNodeName(), s.GetStandby()))
		switch {
		case s.GetService().GetName() != name:
		case s.GetStandby():
			standbys = append(standbys, s.GetNodeName())
		default:
			owners = append(owners, s.GetNodeName())
		}
	}
	slices.Sort(all)
	return all, owners, standbys
}

// cutRole splits the name of a load that ends with a role.
func cutRole(load string) (base, role string, ok bool) {
	for _, role := range []string{"owner", "standby"} {
		if base, ok := strings.CutSuffix(load, role); ok {
			return base, role, true
		}
	}
	return load, "", false
}

// resolve puts the node that has a role in the place of the role's name.
func (g *Rig) resolve(program string) string {
	host, what, _ := strings.Cut(program, "/")
	if node := g.roles[host]; node != "" {
		return node + "/" + what
	}
	return program
}
