// Package controlplane is the central side of the mesh: it keeps the registries
// of nodes and services, computes the views of every node from them, and feeds
// the nodes' proxies by xDS, all on one gRPC listener (CAR-1, 36).
package controlplane

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Config configures a control plane.
type Config struct {
	// Listen is where it serves. Port 0 takes a free one.
	Listen netip.AddrPort
	// Listener serves in place of Listen if not nil. Run closes it.
	Listener net.Listener
	// State is the directory of its store; it is made if it does not exist.
	State string
	// Lease is how long a node lives without a beat; 0 means api.LeaseTimeout. More
	// is for machines so busy that a beat may be late.
	Lease         time.Duration
	digestTimeout time.Duration // 0: registry.DefaultDigestTimeout

	// Logger takes the log; nil discards it.
	Logger *slog.Logger
}

// Run serves the control plane until ctx ends, then closes all streams and
// returns nil. Before it returns an error nothing of it is left running.
func Run(ctx context.Context, cfg Config) error {
	s, err := New(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Serve(ctx)
}
