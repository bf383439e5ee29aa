package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/someipadapter"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/runtime"
)

// network is the adapter of one SOME/IP network. Its stack is opened when the
// table begins to import and again after it failed, so that an address which
// comes late, or goes, concerns this network alone.
type network struct {
	name    string
	node    string
	cfg     runtime.NetworkConfig
	known   *bridge.Interfaces
	file    *config.Network
	expose  *config.Expose
	log     *slog.Logger
	root    *slog.Logger
	address string

	withdrawals chan withdrawal

	mu      sync.Mutex
	open    *opening
	err     error // why it is not open
	since   time.Time
	changed chan struct{} // closed when open changes
}

// opening is the time in which a stack is open.
type opening struct {
	adapter *someipadapter.Adapter
	network *runtime.Network
	ended   chan struct{}
}

var _ bridge.Adapter = (*network)(nil)

func newNetwork(g *gateway, c *config.Network) *network {
	return &network{
		name: c.Name, node: g.node.Name, cfg: networkConfig(c), known: g.interfaces, file: c, expose: c.Expose,
		log: g.log.With("network", c.Name), root: g.opts.Logger, address: c.Address.String(),
		since: time.Now(), changed: make(chan struct{}), withdrawals: make(chan withdrawal),
	}
}

func networkConfig(c *config.Network) runtime.NetworkConfig {
	sd := runtime.SDConfig{
		Group: c.SD.Group, Port: c.SD.Port,
		InitialDelayMin: c.SD.InitialDelay.Min, InitialDelayMax: orNone(c.SD.InitialDelay.Max),
		RepetitionsBaseDelay: c.SD.RepetitionsBaseDelay, RepetitionsMax: orNone(int(c.SD.RepetitionsMax)),
		CyclicOfferDelay: c.SD.CyclicOfferDelay, TTL: c.SD.TTL,
		RequestResponseMin: c.SD.RequestResponseDelay.Min, RequestResponseMax: orNone(c.SD.RequestResponseDelay.Max),
	}
	return runtime.NetworkConfig{
		Name: c.Name, Address: c.Address, Interface: c.Interface, SD: sd,
		ClientIDs: runtime.Range{First: c.ClientIDs.Min, Last: c.ClientIDs.Max},
		Ports:     runtime.Range{First: c.Ports.Min, Last: c.Ports.Max},
	}
}

// orNone turns a configured 0, which means none, into the stack's word for it: its
// own 0 is a default.
func orNone[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

func (n *network) on() bridge.Network {
	return bridge.Network{Protocol: bridge.SOMEIP, Name: n.name}
}

// Import implements [bridge.Adapter]. The StopOffers of what is exposed have left
// when it returns.
func (n *network) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	stack, err := n.start(ctx)
	if err != nil {
		n.set(nil, err)
		return err
	}
	o := &opening{network: stack.Network(n.name), ended: make(chan struct{})}
	o.adapter = someipadapter.New(someipadapter.Config{
		Network: o.network, Interfaces: n.known, Node: n.node, IDs: n.ids, Logger: n.root,
	})
	n.set(o, nil)
	n.log.Info("network open", "address", n.address)
	err = n.take(ctx, o.adapter, offers)
	n.set(nil, err)
	if closeErr := stack.Close(); closeErr != nil {
		n.log.Warn("network not closed cleanly", "error", closeErr)
	}
	close(o.ended)
	return err
}

// start opens the stack. An address that the host does not have yet is waited for;
// meanwhile status and exposures say so.
func (n *network) start(ctx context.Context) (*runtime.Stack, error) {
	cfg := runtime.Config{Networks: []runtime.NetworkConfig{n.cfg}, Logger: n.root}
	stack, err := runtime.Start(cfg)
	if !errors.As(err, new(*endpoint.NoAddressError)) {
		return stack, err
	}
	n.set(nil, err)
	n.log.Warn("network waits", "error", err)
	if err := n.appears(ctx); err != nil {
		return nil, err
	}
	return runtime.Start(cfg)
}

// appears returns when the host has the address of the network.
func (n *network) appears(ctx context.Context) error {
	links, err := endpoint.WatchLinks()
	if err != nil {
		return err
	}
	return errors.Join(links.Wait(ctx, n.cfg.Address.Addr(), n.cfg.Interface), links.Close())
}

// take imports what the adapter finds.
func (n *network) take(ctx context.Context, adapter *someipadapter.Adapter, offers chan<- bridge.Offer) error {
	found := make(chan bridge.Offer)
	ended := make(chan error, 1)
	go func() {
		defer close(found)
		ended <- adapter.Import(ctx, found)
	}()
	in := newIntake(n.file)
	for {
		var told bridge.Offer
		var ok bool
		select {
		case o, more := <-found:
			if !more {
				return <-ended
			}
			told, ok = in.take(o)
		case w := <-n.withdrawals:
			told, ok = in.withdraw(w)
		}
		if !ok {
			continue
		}
		select {
		case offers <- told:
		case <-ctx.Done():
		}
	}
}

// withdraw takes an instance away from the table. It waits while the network is
// not open.
func (n *network) withdraw(ctx context.Context, w withdrawal) error {
	select {
	case n.withdrawals <- w:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Expose implements [bridge.Adapter].
func (n *network) Expose(ctx context.Context, inst bridge.Instance, svc bridge.Service) error {
	o, err := n.await(ctx)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- o.adapter.Expose(inner, inst, svc) }()
	select {
	case err := <-ended:
		return err
	case <-o.ended:
		cancel(context.Cause(ctx))
		return errors.Join(fmt.Errorf("network %s was closed", n.name), <-ended)
	}
}

// await returns the open stack, or a [bridge.NotYetError] with why it is not open. While it is being
// opened for the first time it waits.
func (n *network) await(ctx context.Context) (*opening, error) {
	for {
		n.mu.Lock()
		o, err, changed := n.open, n.err, n.changed
		n.mu.Unlock()
		if o != nil {
			return o, nil
		}
		if err != nil {
			return nil, &bridge.NotYetError{Err: fmt.Errorf("the network is not open: %w", err), Over: changed}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (n *network) set(o *opening, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open != o || err != nil && n.err == nil {
		n.since = time.Now()
	}
	n.open, n.err = o, err
	close(n.changed)
	n.changed = make(chan struct{})
}
