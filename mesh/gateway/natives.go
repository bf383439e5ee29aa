package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/durable"
)

// servicesFile keeps what was added and removed by command over restarts.
const servicesFile = "services.yaml"

// nativeSource is the source of the native services of the node.
const nativeSource = "native"

// savedServices is the content of servicesFile.
type savedServices struct {
	Added   []config.Service `yaml:"added" doc:"Services added by command."`
	Removed []string         `yaml:"removed" doc:"Mesh names of services of the node file that were removed by command."`
}

// natives are the gRPC services of the node: those of its file and those added by
// command. The node owns the list, and nobody else changes it (CAR-16).
type natives struct {
	mu    sync.Mutex
	list  map[string]*native // by mesh name
	saved savedServices
	// run is the context of the probes, nil while none run.
	run    context.Context //nolint:containedctx // probes start and end while the gateway runs
	probes sync.WaitGroup
	// asked is closed once each service has had its first answer: a gateway that
	// was started anew says nothing before, or services that run would seem gone.
	asked     chan struct{}
	askedOnce sync.Once
}

// checkAsked closes asked if it is time. The mutex is held.
func (n *natives) checkAsked() {
	for _, s := range n.list {
		if s.state.Interface == "" {
			return
		}
	}
	n.askedOnce.Do(func() { close(n.asked) })
}

// native is one gRPC service.
type native struct {
	config.Service
	state agent.Instance // as probes see it; zero before the first answer
	stop  context.CancelFunc
}

func newNative(s config.Service) *native { return &native{Service: s} }

func nameOf(s config.Service) string { return model.MeshName(s.Interface, s.Instance) }

// loadNatives reads the node file's services and what commands changed since.
func (g *gateway) loadNatives() error {
	n := &g.natives
	n.list, n.asked = map[string]*native{}, make(chan struct{})
	path := g.path(servicesFile)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := config.Decode(path, data, &n.saved); err != nil {
		return err
	}
	for _, s := range g.node.Services {
		if !slices.Contains(n.saved.Removed, nameOf(s)) {
			n.list[nameOf(s)] = newNative(s)
		}
	}
	for _, s := range n.saved.Added {
		if n.list[nameOf(s)] == nil {
			n.list[nameOf(s)] = newNative(s)
		}
	}
	return nil
}

// runNatives watches the services and announces their state (CAR-15).
func (g *gateway) runNatives(ctx context.Context) error {
	n := &g.natives
	n.mu.Lock()
	n.run = ctx
	for _, s := range n.list {
		g.probe(s) //nolint:contextcheck // it is n.run
	}
	n.checkAsked()
	n.mu.Unlock()
	<-ctx.Done()
	n.mu.Lock()
	n.run = nil
	n.mu.Unlock()
	n.probes.Wait()
	return nil
}

// probe starts the probe of a service, if probes run. The mutex is held.
func (g *gateway) probe(s *native) {
	n := &g.natives
	if n.run == nil {
		return
	}
	ctx, cancel := context.WithCancel(n.run)
	s.stop = cancel
	n.probes.Go(func() {
		defer cancel()
		report := func(up bool, reason string) { g.setNative(ctx, s, up, reason) }
		if err := agent.Probe(ctx, s.Address, s.Interface, report); err != nil {
			report(false, err.Error())
		}
	})
}

func (g *gateway) setNative(ctx context.Context, s *native, up bool, reason string) {
	in := agent.Instance{
		Interface: s.Interface, Instance: s.Instance, Address: s.Address,
		Origin: &meshv1.Origin{Protocol: meshv1.Protocol_GRPC},
		Up:     up, Reason: reason, Since: time.Now(),
	}
	if known, ok := g.interfaces.ByName(s.Interface); ok {
		in.Descriptors = known.Descriptors
		deployedIDs(in.Origin, known.Interface, s.Instance)
	}
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	if ctx.Err() != nil {
		return // removed meanwhile
	}
	g.log.Info("native service", "name", in.Name(), "up", up, "reason", reason)
	s.state = in
	g.agent.Set(nativeSource, in)
	g.natives.checkAsked()
}

// dropNatives says that the native services are gone.
func (g *gateway) dropNatives(reason string) {
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	for _, s := range g.natives.list {
		if s.state.Up {
			s.state.Up, s.state.Reason, s.state.Since = false, reason, time.Now()
			g.agent.Set(nativeSource, s.state)
		}
	}
}

// addNative adds a service, for good. The same one again changes nothing.
func (g *gateway) addNative(s config.Service) (*native, error) {
	n := &g.natives
	n.mu.Lock()
	defer n.mu.Unlock()
	name := nameOf(s)
	if there := n.list[name]; there != nil {
		if there.Address != s.Address || there.Instance != s.Instance {
			return nil, fmt.Errorf("%s is there already, at %s: remove it first", name, there.Address)
		}
		return there, nil
	}
	next := n.saved
	next.Removed = slices.DeleteFunc(slices.Clone(next.Removed), func(r string) bool { return r == name })
	if !slices.ContainsFunc(g.node.Services, func(f config.Service) bool { return nameOf(f) == name && f.Address == s.Address }) {
		next.Added = append(slices.Clone(next.Added), s)
		if len(next.Removed) < len(n.saved.Removed) { // it takes the place of the node file's
			next.Removed = n.saved.Removed
		}
	}
	if err := g.save(next); err != nil {
		return nil, err
	}
	added := newNative(s)
	n.list[name] = added
	g.probe(added)
	return added, nil
}

// removeNative removes a service, for good: one of the node file stays away until
// it is added again.
func (g *gateway) removeNative(name string) error {
	n := &g.natives
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.list[name]
	if s == nil {
		return nil
	}
	next := n.saved
	next.Added = slices.DeleteFunc(slices.Clone(next.Added), func(a config.Service) bool { return nameOf(a) == name })
	inFile := slices.ContainsFunc(g.node.Services, func(f config.Service) bool { return nameOf(f) == name })
	if inFile && !slices.Contains(next.Removed, name) {
		next.Removed = append(slices.Clone(next.Removed), name)
	}
	if err := g.save(next); err != nil {
		return err
	}
	if s.stop != nil {
		s.stop()
	}
	delete(n.list, name)
	g.agent.Remove(nativeSource, name)
	n.checkAsked()
	return nil
}

// save keeps the services before anything happens with them. The mutex is held.
func (g *gateway) save(next savedServices) error {
	data, err := config.Encode(next)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(g.path(servicesFile), data); err != nil {
		return fmt.Errorf("services not kept: %w", err)
	}
	g.natives.saved = next
	return nil
}

func (g *gateway) native(name string) *native {
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	return g.natives.list[name]
}

func (g *gateway) nativeStatus() []InstanceStatus {
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	out := []InstanceStatus{}
	for _, name := range slices.Sorted(maps.Keys(g.natives.list)) {
		s := g.natives.list[name]
		status := InstanceStatus{
			Name: name, Interface: s.Interface, Instance: s.Instance, From: s.Address,
			Up: s.state.Up, Since: s.state.Since, Reason: s.state.Reason,
		}
		if s.state.Interface == "" {
			status.Since, status.Reason = g.started, "not yet asked for its health"
		}
		out = append(out, status)
	}
	return out
}
