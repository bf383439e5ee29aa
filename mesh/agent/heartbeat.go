package agent

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// keepAlive beats until the stream ends, ctx ends, or the control plane has been
// silent for as long as a lease lasts.
func (a *Agent) keepAlive(ctx context.Context, registry meshv1.NodeRegistryClient) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := registry.KeepAlive(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	answers := make(chan struct{}, 1)
	g.Go(func() error {
		for {
			if _, err := stream.Recv(); err != nil {
				return ended(err)
			}
			select {
			case answers <- struct{}{}:
			default:
			}
		}
	})
	g.Go(func() error {
		defer cancel() // ends Recv
		return beat(ctx, stream.Send, answers)
	})
	return g.Wait()
}

func beat(ctx context.Context, send func(*meshv1.KeepAliveRequest) error, answers <-chan struct{}) error {
	tick := time.NewTicker(api.HeartbeatInterval)
	defer tick.Stop()
	silence := time.NewTimer(api.LeaseTimeout)
	defer silence.Stop()
	pulse := api.Pulse{Interval: api.HeartbeatInterval}
	pulse.Beat(time.Now())
	for {
		if err := send(&meshv1.KeepAliveRequest{}); err != nil {
			// The status comes from Recv.
			<-ctx.Done()
			return ctx.Err()
		}
		for waiting := true; waiting; {
			// A node that itself stood still gives the control plane another chance: the
			// answers of that time are not read yet.
			if pulse.Beat(time.Now()) {
				silence.Reset(api.LeaseTimeout)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-answers:
				silence.Reset(api.LeaseTimeout)
			case <-silence.C:
				if pulse.Beat(time.Now()) {
					silence.Reset(api.LeaseTimeout)
					continue
				}
				return status.Errorf(codes.Unavailable, "no answer to the heartbeat for %v", api.LeaseTimeout)
			case <-tick.C:
				waiting = false
			}
		}
	}
}
