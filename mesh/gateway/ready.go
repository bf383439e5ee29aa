package gateway

import (
	"context"
	"net"
	"time"

	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/relay"
)

const connectInterval = 5 * time.Millisecond

// envoyAnswered is told what Envoy acknowledged.
func (g *gateway) envoyAnswered(s relay.State) {
	if !s.Configured(g.started) {
		return
	}
	select {
	case <-g.configured:
	default:
		close(g.configured) // the relay tells one change at a time
	}
}

// awaitReady calls Ready once Envoy is live, has acknowledged its listeners and
// lets callers connect, which it does a moment later.
func (g *gateway) awaitReady(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-g.configured:
	}
	tick := time.NewTicker(connectInterval)
	defer tick.Stop()
	for !g.answers(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	g.log.Info("gateway ready", "egress", g.node.Egress.Socket, "after", time.Since(g.started))
	if g.opts.Ready != nil {
		g.opts.Ready()
	}
	<-ctx.Done()
	return nil
}

func (g *gateway) answers(ctx context.Context) bool {
	if g.supervisor.State().Phase != envoy.Live {
		return false
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", g.node.Egress.Socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
