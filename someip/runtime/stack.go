package runtime

import (
	"errors"
	"fmt"
	"log/slog"
)

// Stack is a SOME/IP stack on one or several networks. Its methods are safe for
// concurrent use.
type Stack struct {
	networks map[string]*Network
}

// Start opens the networks and begins to take part in their service discovery.
// When one cannot be opened nothing is left open.
func Start(cfg Config) (*Stack, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Stack{networks: make(map[string]*Network, len(cfg.Networks))}
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
	n, err := newNetwork(nc, log.With("network", nc.Name))
	if err != nil {
		return err
	}
	s.networks[nc.Name] = n
	return nil
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
	return errors.Join(errs...)
}
