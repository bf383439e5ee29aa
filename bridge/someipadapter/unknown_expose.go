package someipadapter

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// exposedUnknown is an instance of another SOME/IP network while it is offered:
// payloads pass as they are, and eventgroups are asked for when a client does.
type exposedUnknown struct {
	adapter *Adapter
	key     someip.InstanceKey
	svc     bridge.Subscribable
	slots   chan struct{} // one for each request that is served

	ctx      context.Context //nolint:containedctx // the life of the exposure, for what callbacks start
	work     sync.WaitGroup
	started  chan struct{} // closed when offering is set
	offering *runtime.Offering

	mu     sync.Mutex
	relays map[uint16]*relay // by eventgroup
	over   bool
}

// exposeUnknown offers an instance over the transports that it has on its own
// network.
func (a *Adapter) exposeUnknown(ctx context.Context, key someip.InstanceKey, svc bridge.Service) error {
	subscribable, ok := svc.(bridge.Subscribable)
	if !ok {
		return &bridge.NotExposableError{Reason: "its eventgroups cannot be subscribed to"}
	}
	d, err := a.describe(ctx, svc)
	if err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	x := &exposedUnknown{
		adapter: a, key: key, svc: subscribable, slots: make(chan struct{}, a.cfg.MaxRequests),
		ctx: running, started: make(chan struct{}), relays: map[uint16]*relay{},
	}
	rival := make(rivals, 1)
	cfg := runtime.ServiceConfig{
		Service: key.Service, Instance: key.Instance, Major: key.Major, Minor: d.Minor,
		Handler: x, Groups: x,
		OnConflict: rival.add, IgnoreConflict: a.stands, Configuration: []string{marker + a.cfg.Node},
	}
	if d.UDP {
		cfg.UDPPort = runtime.AutoPort
	}
	if d.TCP {
		cfg.TCPPort = runtime.AutoPort
	}
	if x.offering, err = a.network.Offer(cfg); err != nil {
		cancel()
		x.close()
		return fmt.Errorf("someipadapter: %w", err)
	}
	close(x.started)
	select {
	case peer := <-rival:
		err = a.sights.rival(key, peer)
	case <-ctx.Done():
	}
	x.offering.Stop()
	cancel()
	x.close()
	drain(x.slots)
	return err
}

// close waits for what callbacks started, and lets them start nothing more.
func (x *exposedUnknown) close() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.work.Wait()
}

// describe asks an instance what its offer has to say.
func (a *Adapter) describe(ctx context.Context, svc bridge.Service) (d opaque.Description, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.RequestTimeout)
	defer cancel()
	out, err := svc.Invoke(ctx, opaque.Describe, nil)
	if err != nil {
		return d, err
	}
	if d, err = opaque.ParseDescription(out); err == nil && !d.UDP && !d.TCP {
		err = status.New(codes.FailedPrecondition, "it is offered over no transport")
	}
	return d, err
}

// ServeSOMEIP implements [runtime.Handler]. As with typed instances, a request is
// served on a goroutine of its own, and one too many is refused at once.
func (x *exposedUnknown) ServeSOMEIP(ctx context.Context, r *runtime.Request) {
	in := opaque.Request{Method: r.Method, Payload: r.Payload, Reliable: r.Reliable}
	wire := in.Append(make([]byte, 0, len(r.Payload)+16))
	select {
	case x.slots <- struct{}{}:
	default:
		x.fail(r, status.New(codes.ResourceExhausted, "too many requests are served"))
		return
	}
	go func() {
		defer func() { <-x.slots }()
		x.answer(ctx, r, wire)
	}()
}

func (x *exposedUnknown) answer(ctx context.Context, r *runtime.Request, in []byte) {
	ctx, cancel := context.WithTimeout(ctx, x.adapter.cfg.RequestTimeout)
	defer cancel()
	m := opaque.Call
	if r.NoReturn {
		m = opaque.Send
	}
	out, err := x.svc.Invoke(ctx, m, in)
	if err != nil {
		x.fail(r, callError(err))
		return
	}
	if r.NoReturn {
		return
	}
	payload, err := opaque.ParseResponse(out)
	if err != nil {
		x.fail(r, status.DataLoss("", err.Error()))
		return
	}
	x.sent(r.Respond(payload))
}

// fail answers with an error, unless the request takes no answer.
func (x *exposedUnknown) fail(r *runtime.Request, err *status.Error) {
	if r.NoReturn {
		return
	}
	code, payload := err.SOMEIP(false)
	x.sent(r.Fail(code, err.Exception, payload))
}

func (x *exposedUnknown) sent(err error) {
	if err != nil {
		x.adapter.log.Debug("answer not sent", "instance", x.key, "error", err)
	}
}
