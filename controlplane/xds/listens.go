package xds

import (
	"context"
	"net/netip"
	"time"

	"carisma.dev/gateway/controlplane/registry"
)

// Envoy acknowledges a listener before it listens, so an ingress that has begun with
// its stream is asked once whether it answers. Whoever called it before would be
// refused the connection.

const (
	listensInterval = 10 * time.Millisecond
	listensTimeout  = 300 * time.Millisecond // of one question
)

// listens reports whether the ingress of a proxy has answered since its stream
// began. The first one to ask starts to find out; those who listen are told.
func (c *Cache) listens(st *stream, ingress netip.AddrPort, probe registry.Prober) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.listens == nil {
		st.listens = new(bool)
		go c.awaitListens(st, st.node.released, ingress, probe)
	}
	return *st.listens
}

// awaitListens asks until the ingress answers or the stream has ended.
func (c *Cache) awaitListens(st *stream, ended <-chan struct{}, ingress netip.AddrPort, probe registry.Prober) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), listensTimeout)
		err := probe(ctx, ingress)
		cancel()
		if err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			*st.listens = true
			c.tell()
			return
		}
		again := time.NewTimer(listensInterval)
		select {
		case <-again.C:
		case <-ended:
			again.Stop()
			return
		}
	}
}
