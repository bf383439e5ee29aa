package someipadapter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// imported is a SOME/IP service instance while it is offered.
type imported struct {
	instance bridge.Instance
	since    time.Time // when the instance came
	network  string
	released func() // gives the client up
	client   *runtime.Client
	codecs   *codecs
	log      *slog.Logger

	mu     sync.Mutex
	groups map[uint16]*group // those with watchers
	gone   chan struct{}     // closed after err was set
	err    error
}

var _ bridge.Service = (*imported)(nil)

func (s *imported) Interface() *model.Interface { return s.instance.Interface }

func (s *imported) offered() bridge.Instance { return s.instance }

// payloads holds buffers for payloads on their way to the network.
var payloads = sync.Pool{New: func() any { return new([]byte) }}

func (s *imported) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	c := s.codecs.methods[m]
	if c == nil {
		return nil, status.New(codes.Unimplemented, "%s cannot be called over SOME/IP", m.RPC)
	}
	buf := payloads.Get().(*[]byte)
	defer payloads.Put(buf)
	payload, err := c.in.ToSOMEIP((*buf)[:0], in)
	if err != nil {
		return nil, requestError(err)
	}
	*buf = payload
	if c.FireAndForget {
		if err := s.client.Send(ctx, c.SOMEIP.ID, c.SOMEIP.Reliable, payload); err != nil {
			return nil, callError(err)
		}
		return nil, nil
	}
	resp, err := s.client.Call(ctx, c.SOMEIP.ID, c.SOMEIP.Reliable, payload)
	if err != nil {
		return nil, callError(err)
	}
	if resp.Code != someip.OK || resp.Exception {
		return nil, status.FromSOMEIP(resp.Code, resp.Exception, resp.Payload, s.instance.Interface)
	}
	out, err := c.out.ToProto(make([]byte, 0, protoSize(resp.Payload)), resp.Payload)
	if err != nil {
		return nil, answerError(err)
	}
	return out, nil
}

// protoSize is what the protobuf form of a payload usually fits in.
func protoSize(payload []byte) int { return 2*len(payload) + 16 }

// end makes all watches return err. Their subscriptions end here: the instance
// may be back already, and whoever subscribes then shall get initial events.
func (s *imported) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	close(s.gone)
	for _, g := range s.groups {
		g.sub.Close()
	}
	s.released()
}

// over tells whether the instance went, though that may not have been taken yet.
func (s *imported) over() bool {
	av := s.client.Availability()
	return !av.Up || !av.Since.Equal(s.since)
}

func (s *imported) Watch(ctx context.Context, e *model.Event, sink bridge.Sink) error {
	c := s.codecs.events[e]
	if c == nil {
		return status.New(codes.Unimplemented, "%s cannot be watched over SOME/IP", e.RPC)
	}
	w := &watcher{sink: sink, refused: make(chan error, 1)}
	g, err := s.join(ctx, c, w)
	if err != nil {
		return callError(err)
	}
	defer s.leave(g, c, w)
	select {
	case err := <-w.refused:
		return refusal(ctx, err, s.gone, &s.err)
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
