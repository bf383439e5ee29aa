package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"carisma.dev/gateway/someip/endpoint"
)

// Stack is a SOME/IP stack on one or several networks. Its methods are safe for
// concurrent use.
type Stack struct {
	networks map[string]*Network
	links    *endpoint.Links // nil: the system does not tell
}

// Start opens the networks and begins to take part in their service discovery.
// When one cannot be opened nothing is left open.
func Start(cfg Config) (*Stack, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Stack{networks: make(map[string]*Network, len(cfg.Networks))}
	if slices.ContainsFunc(cfg.Networks, func(nc NetworkConfig) bool { return nc.Sockets == nil }) {
		var err error
		if s.links, err = endpoint.WatchLinks(); err != nil {
			log.Warn("links.watch", "error", err) // an interface that goes is noticed by its silence then
		}
	}
	for _, nc := range cfg.Networks {
		if err := s.open(nc, log); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Stack) open(nc NetworkConfig, log *slog.Logger) error {
	if err := nc.Validate(); err != nil {
		return err
	}
	if s.networks[nc.Name] != nil {
		return fmt.Errorf("runtime: two networks named %q", nc.Name)
	}
	n, err := s.openNetwork(nc, log.With("network", nc.Name))
	if err != nil {
		return err
	}
	s.networks[nc.Name] = n
	if s.links == nil || nc.Sockets != nil {
		return nil
	}
	if now, _ := s.links.Follow(nc.Address.Addr(), nc.Interface, n.presence); now != endpoint.Up {
		n.presence(now)
	}
	return nil
}

// openNetwork opens a network, once its address is there.
func (s *Stack) openNetwork(nc NetworkConfig, log *slog.Logger) (*Network, error) {
	n, err := newNetwork(nc, log)
	var absent *endpoint.NoAddressError
	if s.links == nil || nc.AddressTimeout <= 0 || !errors.As(err, &absent) {
		return n, err
	}
	log.Info("network.wait", "address", nc.Address)
	ctx, cancel := context.WithTimeoutCause(context.Background(), nc.AddressTimeout, err)
	defer cancel()
	if err := s.links.Wait(ctx, nc.Address.Addr(), nc.Interface); err != nil {
		return nil, err
	}
	return newNetwork(nc, log)
}

// Network returns the network of that name, or nil.
func (s *Stack) Network(name string) *Network { return s.networks[name] }

// Close stops every offering (StopOffer leaves before the sockets close),
// withdraws the subscriptions, fails outstanding calls with [ErrClosed] and waits
// until all goroutines have ended. It must not be called from a callback.
func (s *Stack) Close() error {
	var errs []error
	for _, n := range s.networks {
		errs = append(errs, n.close())
	}
	if s.links != nil {
		errs = append(errs, s.links.Close())
	}
	return errors.Join(errs...)
}
