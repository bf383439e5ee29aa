// Package gateway is the gateway of one HPC: it puts the adapters of its
// networks, the table of bridges, the mesh agent and the one Envoy together.
//
//	SOME/IP network ⇄ adapter ⇄ table ⇄ gRPC adapter ⇄ Envoy ⇄ mesh
//	                               │                     │ ADS, relayed
//	                               └──── agent ──────────┴──── control plane
//
// What the table imports, the agent announces; what the mesh has, the catalogue
// brings to the gRPC adapter, which answers for it and imports it.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"carisma.dev/gateway/mesh/config"
)

// The sockets of a gateway in its state directory, beside egress.sock, which is
// Envoy's.
const (
	gatewaySocket = "gateway.sock" // gRPC, for Envoy
	adsSocket     = "ads.sock"     // ADS, for Envoy
	adminSocket   = "admin.sock"   // Status, for the operator
)

// adsStore is the file with what Envoy acknowledged last.
const adsStore = "ads.kept"

// flushTime bounds how long a gateway that stops waits for the control plane to
// take its last word.
const flushTime = 500 * time.Millisecond

// Options are what the caller of Run decides, beside the node file.
type Options struct {
	// EnvoyPath names Envoy's program in place of the node file's envoy.path and
	// of CARISMA_ENVOY.
	EnvoyPath string
	// KeepEnvoy leaves Envoy running when the gateway stops; the next run adopts
	// it.
	KeepEnvoy bool
	// Ready, if not nil, is called once Envoy has its listeners and answers on
	// them. Services come and go after that.
	Ready  func()
	Logger *slog.Logger // nil for none
}

// Run runs the gateway until ctx ends, then stops it in order: its offers leave
// the networks, streams end, the mesh is told, Envoy drains. It returns nil, or
// why the gateway could not start or go on: a *config.Error and the like,
// *envoy.ProgramError, agent.ErrSuperseded. When it returns nothing of the
// gateway is left running.
func Run(ctx context.Context, node *config.Node, opts Options) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := newGateway(ctx, node, opts)
	if err != nil {
		return fmt.Errorf("gateway %s: %w", node.Name, err)
	}
	defer g.close()
	if err := g.run(ctx); err != nil {
		return fmt.Errorf("gateway %s: %w", node.Name, err)
	}
	return nil
}

// run starts the parts in an order in which each finds what it needs, and stops
// them in the order in which callers are treated best.
func (g *gateway) run(ctx context.Context) error {
	stopping, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	base := context.WithoutCancel(ctx) // the parts stop in order, not all at once
	start := func(run func(context.Context) error) *part { return startPart(base, fail, run) }
	admin := start(g.serveAdmin)
	server := start(func(ctx context.Context) error { return g.server.Serve(ctx, g.listeners.gateway) })
	relay := start(func(ctx context.Context) error { return g.relay.Serve(ctx, g.listeners.ads) })
	supervisor := start(g.supervisor.Run)
	meshAgent := start(g.agent.Run)
	natives := start(g.runNatives)
	watch := start(func(ctx context.Context) error { g.table.Watch(ctx, g.announce); return nil })
	table := start(g.table.Run)
	ready := start(g.awaitReady)
	g.log.Info("gateway started", "networks", len(g.networks))

	<-stopping.Done()
	g.log.Info("gateway stops")
	ready.stop()
	table.stop()
	watch.stop()
	natives.stop()
	g.takeLeave(ctx)
	supervisor.stop()
	server.stop()
	relay.stop()
	meshAgent.stop()
	admin.stop()
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(stopping)
}

// takeLeave tells the mesh that what this node has is gone. With an Envoy that
// runs on, native services stay.
func (g *gateway) takeLeave(ctx context.Context) {
	for _, b := range g.table.Plan() {
		g.announce(b.State)
	}
	if !g.opts.KeepEnvoy {
		g.dropNatives("its node stops")
	}
	if !g.agent.Status().Connected {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if err := g.agent.Flush(ctx); err != nil {
		g.log.Warn("the control plane did not hear that the gateway stops", "error", err)
	}
}

func (g *gateway) path(file string) string { return filepath.Join(g.state, file) }

// part is a running part of a gateway.
type part struct {
	cancel context.CancelFunc
	done   chan struct{}
}

var errEnded = errors.New("a part of it ended by itself")

// startPart runs a part until stop. One that ends before tells fail.
func startPart(ctx context.Context, fail context.CancelCauseFunc, run func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(ctx)
	p := &part{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if err := run(ctx); err != nil {
			fail(err)
		} else if ctx.Err() == nil {
			fail(errEnded)
		}
	}()
	return p
}

func (p *part) stop() {
	p.cancel()
	<-p.done
}
