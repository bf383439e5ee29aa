package stackbench

import (
	"context"
	"errors"
	"syscall"
	"time"

	"carisma.dev/gateway/someip/runtime"
)

// server says how to run the service.
type server struct {
	instance uint16
	program  string
	args     []string
	env      []string // besides that of a vehicle
}

// delayVariable sets the initial delay of service discovery, in milliseconds, of the
// programs whose starts are compared: a random one would be most of the difference.
const delayVariable = "CARISMA_SD_DELAY"

func (w *world) own() server {
	return server{instance: Own, program: "bench-peer", args: []string{"shared"}}
}

func (w *world) vsomeipService(size string) server {
	return server{instance: Vsomeip, program: w.vsomeip("bench_service"), args: []string{"--instance", "2", "--size", size}}
}

func (s server) run(ctx context.Context, w *world) (*process, error) {
	host, at := w.server, serverAddr
	if s.instance == Vsomeip {
		host, at = w.Host("vsomeip"), vsomeipAddr
	}
	cmd := w.command(ctx, at, s.program, s.args...)
	cmd.Env = append(cmd.Env, s.env...)
	return w.start(host, cmd)
}

// Starts are the times of a service that comes, seen by our client, in milliseconds.
type Starts struct {
	Available float64 `json:"available_ms"` // from the start of its process
	// Event is the time from the start of a process, whose predecessor was killed, to
	// the first event of it, the initial value of a field.
	Event float64 `json:"event_ms"`
}

// starts measures a service that is started, killed and started again.
func (w *world) starts(ctx context.Context, s server) (t Starts, err error) {
	stack, n, err := w.stack()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	c, err := n.Client(key(s.instance))
	if err != nil {
		return t, err
	}
	events := make(chan time.Time, 16)
	if _, err := c.Subscribe(ctx, runtime.SubscribeConfig{
		Eventgroup: 2, Events: []uint16{Field}, Unreliable: true,
		OnEvent: func(runtime.Notification) {
			select {
			case events <- time.Now():
			default: // nobody waits
			}
		},
	}); err != nil {
		return t, err
	}
	first := func() (time.Time, error) {
		select {
		case at := <-events:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
	began := time.Now()
	p, err := s.run(ctx, w)
	if err != nil {
		return t, err
	}
	if err := c.Await(ctx); err != nil {
		p.end()
		return t, err
	}
	t.Available = milliseconds(time.Since(began))
	_, err = first()
	p.end()
	if err != nil {
		return t, err
	}
	for len(events) > 0 {
		<-events
	}
	began = time.Now()
	if p, err = s.run(ctx, w); err != nil {
		return t, err
	}
	at, err := first()
	t.Event = milliseconds(at.Sub(began))
	if err != nil {
		p.end()
		return t, err
	}
	// It withdraws its offer, so that the next measurement begins without it.
	err = p.Process.Signal(syscall.SIGTERM)
	_ = p.Wait() // some report the signal as their end
	return t, errors.Join(err, w.gone(ctx, c))
}

// gone waits until an instance that was killed is not available any more.
func (w *world) gone(ctx context.Context, c *runtime.Client) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for c.Availability().Up {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fastStart returns the time from Offer, in a process that runs, to the client that
// waits for the instance: without the random delays that service discovery is allowed.
func (w *world) fastStart(ctx context.Context) (ms float64, err error) {
	stack, n, err := w.stack()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	server, err := w.fastServer()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	c, err := n.Client(key(Own))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := w.server.Do(func() error { // the socket of the port belongs to the host
		_, err := server.Network(network).Offer(runtime.ServiceConfig{
			Service: Service, Instance: Own, Major: 1, UDPPort: 30600,
		})
		return err
	}); err != nil {
		return 0, err
	}
	err = c.Await(ctx)
	return milliseconds(time.Since(began)), err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
