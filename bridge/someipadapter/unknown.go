package someipadapter

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// unknown is a SOME/IP service instance whose interface is not known, while it is
// offered. It takes a client id when it is first used: a network may offer more
// instances than there are ids.
type unknown struct {
	instance bridge.Instance
	offer    runtime.Availability
	clients  *clients
	log      *slog.Logger

	mu      sync.Mutex
	client  *runtime.Client // nil until it is used
	watches map[*unknownWatch]struct{}
	gone    chan struct{} // closed after err was set
	err     error
}

var _ bridge.Subscribable = (*unknown)(nil)

func (a *Adapter) newUnknown(av runtime.Availability, c *clients) *unknown {
	return &unknown{
		instance: bridge.Instance{
			Interface: opaque.Interface, Name: opaque.InstanceName(av.Key), Descriptors: opaque.Descriptors(),
			Origin: bridge.Origin{
				Protocol: bridge.SOMEIP, Network: a.network.Name(),
				ServiceID: av.Key.Service, InstanceID: av.Key.Instance,
				Major: uint32(av.Key.Major), Minor: av.Minor, Node: a.cfg.Node,
			},
		},
		offer: av, clients: c, log: a.log,
		watches: map[*unknownWatch]struct{}{}, gone: make(chan struct{}),
	}
}

func (s *unknown) Interface() *model.Interface { return opaque.Interface }

func (s *unknown) offered() bridge.Instance { return s.instance }

// use returns the client, or why the instance is gone.
func (s *unknown) use() (*runtime.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		return nil, s.err
	default:
	}
	if s.client == nil {
		client, err := s.clients.hold(s.offer.Key)
		if err != nil {
			return nil, status.New(codes.ResourceExhausted, "%v", err)
		}
		s.client = client
	}
	return s.client, nil
}

// end implements present. Subscriptions end here: the instance may be back
// already, and whoever subscribes then shall get initial events.
func (s *unknown) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	close(s.gone)
	for w := range s.watches {
		w.sub.Close()
	}
	if s.client != nil {
		s.clients.release(s.offer.Key)
	}
}

// over tells whether the instance went, though that may not have been taken yet.
func (s *unknown) over(c *runtime.Client) bool {
	av := c.Availability()
	return !av.Up || !av.Since.Equal(s.offer.Since)
}

// Invoke implements [bridge.Service].
func (s *unknown) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	if m == opaque.Describe {
		at := s.offer.Endpoints
		return opaque.Description{
			Key: s.offer.Key, Minor: s.offer.Minor, Network: s.instance.Origin.Network,
			UDP: at.UDP.IsValid(), TCP: at.TCP.IsValid(),
		}.Append(nil), nil
	}
	r, err := opaque.ParseRequest(in)
	if err != nil {
		return nil, status.InvalidArgument("", err.Error())
	}
	client, err := s.use()
	if err != nil {
		return nil, err
	}
	reliable := r.Reliable || s.needsTCP(client, r.Payload)
	if m == opaque.Send {
		if err := client.Send(ctx, r.Method, reliable, r.Payload); err != nil {
			return nil, callError(err)
		}
		return nil, nil
	}
	resp, err := client.Call(ctx, r.Method, reliable, r.Payload)
	if err != nil {
		return nil, callError(err)
	}
	if resp.Code != someip.OK || resp.Exception {
		return nil, status.FromSOMEIP(resp.Code, resp.Exception, resp.Payload, nil)
	}
	return opaque.AppendResponse(make([]byte, 0, len(resp.Payload)+8), resp.Payload), nil
}

// needsTCP says that a request cannot go over UDP, but over TCP.
func (s *unknown) needsTCP(c *runtime.Client, payload []byte) bool {
	at := c.Availability().Endpoints
	return at.TCP.IsValid() && (!at.UDP.IsValid() || len(payload) > someip.MaxUDPPayload)
}

// Watch implements [bridge.Service].
func (s *unknown) Watch(context.Context, *model.Event, bridge.Sink) error {
	return status.New(codes.Unimplemented, "an eventgroup is needed")
}

// unknownWatch is the watch of an eventgroup.
type unknownWatch struct {
	service *unknown
	client  *runtime.Client
	group   uint16
	sub     *runtime.Subscription
	opened  func()
	sink    bridge.Sink
	refused chan error // takes one

	// Of the items; the stack tells one at a time for each transport.
	mu     sync.Mutex
	peer   netip.AddrPort
	source string
}

// Subscribe implements [bridge.Subscribable].
func (s *unknown) Subscribe(ctx context.Context, _ *model.Event, in []byte, opened func(), sink bridge.Sink) error {
	req, err := opaque.ParseSubscription(in)
	if err != nil {
		return status.InvalidArgument("", err.Error())
	}
	client, err := s.use()
	if err != nil {
		return err
	}
	w := &unknownWatch{
		service: s, client: client, group: req.Eventgroup,
		opened: sync.OnceFunc(opened), sink: sink, refused: make(chan error, 1),
	}
	if err := s.join(ctx, w, req.Events); err != nil {
		return callError(err)
	}
	defer s.leave(w)
	select {
	case err := <-w.refused:
		return refusal(ctx, err, s.gone, &s.err)
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join subscribes for w. The server sends initial events only to the first of an
// eventgroup, so that who joins later has them sent again.
func (s *unknown) join(ctx context.Context, w *unknownWatch, events []uint16) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		return s.err
	default:
	}
	at := w.client.Availability().Endpoints
	w.sub, err = w.client.Subscribe(context.WithoutCancel(ctx), runtime.SubscribeConfig{
		Eventgroup: w.group, Events: events, Unreliable: at.UDP.IsValid(), Reliable: at.TCP.IsValid(),
		OnEvent: w.event, OnState: w.state,
	})
	if err != nil {
		return err
	}
	for other := range s.watches {
		if other.group == w.group {
			w.sub.Refresh()
			break
		}
	}
	s.watches[w] = struct{}{}
	return nil
}

func (s *unknown) leave(w *unknownWatch) {
	w.sub.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, w)
}

// event takes a notification from the stack.
func (w *unknownWatch) event(n runtime.Notification) {
	if w.service.over(w.client) {
		return // it is for those who watch what the instance is now
	}
	e := opaque.Event{ID: n.Event, Payload: n.Payload, Reliable: n.Reliable}
	it := bridge.Item{
		Payload: e.Append(make([]byte, 0, len(n.Payload)+16)), Session: n.Session, Received: time.Now(), Initial: n.Initial,
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.Peer != w.peer {
		w.peer, w.source = n.Peer, w.service.instance.Origin.Network+"/"+n.Peer.String()
	}
	it.Source = w.source
	w.sink(it)
}

// state tells the watcher that the server has acknowledged, or refused.
func (w *unknownWatch) state(st runtime.SubscriptionStatus) {
	switch st.State {
	case runtime.SubscriptionActive:
		w.opened()
	case runtime.SubscriptionRefused:
		select {
		case w.refused <- status.Unavailable(string(st.Reason), st.Since):
		default:
		}
	case runtime.SubscriptionWaiting:
	}
}
