package someipadapter

import (
	"context"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// exposed is an instance of another protocol while it is offered.
type exposed struct {
	adapter  *Adapter
	key      someip.InstanceKey
	svc      bridge.Service
	iface    *model.Interface
	codecs   *codecs
	offering *runtime.Offering
	slots    chan struct{}      // one for each request that is served
	demands  map[uint16]*demand // by event id
	rival    rivals
}

// ServeSOMEIP implements [runtime.Handler]. It translates the request on the
// receive goroutine and calls the service on another: a slow service holds up
// its own callers only. A request too many is refused at once.
func (x *exposed) ServeSOMEIP(ctx context.Context, r *runtime.Request) {
	c := x.codecs.methodByID[r.Method]
	if c == nil {
		x.fail(r, status.New(codes.Unimplemented, "unknown method 0x%04x", r.Method))
		return
	}
	in, err := c.in.ToProto(make([]byte, 0, protoSize(r.Payload)), r.Payload)
	if err != nil {
		x.adapter.log.Debug("malformed request", "instance", x.key, "method", c.Name, "peer", r.Peer, "error", err)
		x.fail(r, status.FromSOMEIP(someip.MalformedMessage, true, nil, nil))
		return
	}
	select {
	case x.slots <- struct{}{}:
	default:
		x.fail(r, status.New(codes.ResourceExhausted, "too many requests are served"))
		return
	}
	go func() {
		defer func() { <-x.slots }()
		x.answer(ctx, r, c, in)
	}()
}

// drain waits for the requests that are served, and refuses others from then on.
func drain(slots chan struct{}) {
	for range cap(slots) {
		slots <- struct{}{}
	}
}

func (x *exposed) answer(ctx context.Context, r *runtime.Request, c *methodCodec, in []byte) {
	ctx, cancel := context.WithTimeout(ctx, x.adapter.cfg.RequestTimeout)
	defer cancel()
	out, err := x.svc.Invoke(ctx, c.Method, in)
	if err != nil {
		x.fail(r, callError(err))
		return
	}
	if r.NoReturn {
		return
	}
	buf := payloads.Get().(*[]byte)
	defer payloads.Put(buf)
	payload, err := c.out.ToSOMEIP((*buf)[:0], out)
	if err != nil {
		x.adapter.log.Warn("answer does not fit SOME/IP", "instance", x.key, "method", c.Name, "error", err)
		x.fail(r, answerError(err))
		return
	}
	*buf = payload
	x.sent(r.Respond(payload))
}

// fail answers with an error, unless the request takes no answer.
func (x *exposed) fail(r *runtime.Request, err *status.Error) {
	if r.NoReturn {
		return
	}
	code, payload := err.SOMEIP(x.iface.SOMEIP.StandardCodesOnly)
	x.sent(r.Fail(code, err.Exception, payload))
}

func (x *exposed) sent(err error) {
	if err != nil {
		x.adapter.log.Debug("answer not sent", "instance", x.key, "error", err)
	}
}
