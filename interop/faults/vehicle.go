package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/run"
)

//go:generate go run ../../codegen/internal/protogen -root ../.. -grpc -I ../../codegen/protos -I vehicle/interfaces faults/v1/faults.proto

// Options say with which programs a suite is run, and where.
type Options struct {
	Carisma string
	Envoy   string
	Dir     string // for state, logs and sockets; short, for its sockets
}

// Rig is a running vehicle under load. It is not for concurrent use.
type Rig struct {
	runner *run.Runner
	suite  *Suite
	loads  []*loading
	conns  map[string]*grpc.ClientConn // by host
	cancel context.CancelFunc
	work   sync.WaitGroup
	frozen map[string]int    // process ids by program
	roles  map[string]string // nodes by role, as of the last settled step

	mu     sync.Mutex
	failed error // of a load that could not go on
}

// calmAtStart bounds the start of the vehicle until every load is served.
const calmAtStart = 60 * time.Second

// Start starts the vehicle and the loads, and waits until all of them are served.
func Start(ctx context.Context, o Options, s *Suite) (_ *Rig, err error) {
	v, err := vehicles.Load(s.Vehicle)
	if err != nil {
		return nil, err
	}
	r, err := run.New(v, run.Options{Namespaces: true, Dir: o.Dir, Carisma: o.Carisma, Envoy: o.Envoy})
	if err != nil {
		return nil, err
	}
	g := &Rig{runner: r, suite: s, conns: map[string]*grpc.ClientConn{}, frozen: map[string]int{}, roles: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if err := r.Start(); err != nil {
		return nil, err
	}
	ctx, g.cancel = context.WithCancel(ctx)
	if err := g.startLoads(ctx); err != nil {
		return nil, err
	}
	return g, g.calm(ctx, calmAtStart)
}

func (g *Rig) startLoads(ctx context.Context) error {
	programs := map[string][]*loading{}
	for i := range g.suite.Loads {
		l := &loading{Load: &g.suite.Loads[i]}
		if l.Extra {
			continue
		}
		g.loads = append(g.loads, l)
		if l.Program != "" {
			programs[l.Program] = append(programs[l.Program], l)
			continue
		}
		conn, err := g.conn(l.Host)
		if err != nil {
			return fmt.Errorf("%s: load %s: %w", l.Pos, l.Name, err)
		}
		g.work.Go(func() { l.run(ctx, conn) })
	}
	for name, loads := range programs {
		c := g.runner.Vehicle().Component(name)
		if c == nil {
			return fmt.Errorf("%s: there is no component %q", loads[0].Pos, name)
		}
		path := filepath.Join(g.runner.Dir(c.Host), name+".log")
		g.work.Go(func() {
			if err := runProgram(ctx, path, loads); err != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.failed = errors.Join(g.failed, fmt.Errorf("program %s: %w", name, err))
			}
		})
	}
	return nil
}

// conn returns the connection of all loads of a host.
func (g *Rig) conn(host string) (*grpc.ClientConn, error) {
	if c := g.conns[host]; c != nil {
		return c, nil
	}
	c, err := dial(g.runner, host)
	if err == nil {
		g.conns[host] = c
	}
	return c, err
}

// Close ends the loads and the vehicle.
func (g *Rig) Close() error {
	if g.cancel != nil {
		g.cancel()
	}
	g.work.Wait()
	var errs []error
	for _, c := range g.conns {
		errs = append(errs, c.Close())
	}
	for name, pid := range g.frozen { // or it cannot be stopped
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("thaw %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, g.failed, g.runner.Close())...)
}

func (g *Rig) state(host string) string { return filepath.Join(g.runner.Dir(host), "state") }

// envoyPID reads the pid file of an HPC's proxy.
func (g *Rig) envoyPID(host string) (int, error) {
	data, err := os.ReadFile(filepath.Join(g.state(host), "envoy.pid"))
	if err != nil {
		return 0, err
	}
	var pid struct {
		PID int `json:"pid"`
	}
	return pid.PID, json.Unmarshal(data, &pid)
}

// pid returns the process id of a program by its name in scenarios.
func (g *Rig) pid(name string) (int, error) {
	if host, what := filepath.Split(name); what == "envoy" {
		return g.envoyPID(filepath.Clean(host))
	}
	p := g.runner.Process(name)
	if p == nil {
		return 0, fmt.Errorf("there is no program %q", name)
	}
	pid, ok := p.PID()
	if !ok {
		return 0, fmt.Errorf("%s does not run", name)
	}
	return pid, nil
}
