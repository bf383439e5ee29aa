package registry

import (
	"context"
	"net/netip"
	"time"

	"carisma.dev/gateway/mesh/api"
)

// Prober asks a proxy's ingress whether it lives; nil means it does. It returns
// when ctx ends.
type Prober func(ctx context.Context, ingress netip.AddrPort) error

// Times of the probes of a lost node's proxy. Two that fail in a row count.
const (
	probeInterval = 250 * time.Millisecond
	probeTimeout  = 300 * time.Millisecond
	probeFailures = 2
)

// startProbe watches the proxy of a lost node until the node is back: a lost
// gateway is not a lost node.
func (r *Registry) startProbe(n *node) {
	if r.cfg.Probe == nil || n.Proxy == nil || len(n.services) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stopProbe = cancel
	ingress := n.Proxy.Ingress
	r.wg.Go(func() { r.probe(ctx, n, ingress) })
}

func (r *Registry) probe(ctx context.Context, n *node, ingress netip.AddrPort) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for failed := 0; ; {
		began := time.Now()
		one, cancel := context.WithTimeout(ctx, probeTimeout)
		err := r.cfg.Probe(one, ingress)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && time.Since(began) > probeTimeout+api.StallTolerance:
			// This side stood still: the silence proves nothing.
		case err == nil:
			failed = 0
			r.setMute(ctx, n, false)
		default:
			if failed++; failed >= probeFailures {
				r.setMute(ctx, n, true)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Registry) setMute(ctx context.Context, n *node, mute bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil || n.mute == mute {
		return
	}
	n.mute, n.muteAt = mute, time.Now()
	r.log.Warn("proxy of lost node", "node", n.Name, "answers", !mute)
	d := r.newDirty()
	d.servicesOf(n)
	r.publish(d)
}
