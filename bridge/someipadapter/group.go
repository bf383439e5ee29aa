package someipadapter

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/someip/runtime"
)

// group is the one subscription of an eventgroup. It keeps the last value of
// each field of the group: a watcher that joins a subscription causes no initial
// event.
type group struct {
	service *imported
	id      uint16
	sub     *runtime.Subscription
	joined  int // watchers; guarded by the service's mutex

	mu     sync.Mutex // taken in callbacks of the stack: never held while calling it
	events map[uint16]*feed
	peer   netip.AddrPort
	source string // of the items from peer
}

// feed is one event of a group.
type feed struct {
	codec    *eventCodec
	watchers []*watcher
	last     bridge.Item // of a field
	known    bool        // last is valid
	lost     uint32      // undecodable since the last item
}

type watcher struct {
	sink    bridge.Sink
	refused chan error // takes one
}

// join makes w a watcher of an event, through an eventgroup that is subscribed
// already where there is one.
func (s *imported) join(ctx context.Context, c *eventCodec, w *watcher) (*group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		return nil, s.err
	default:
	}
	for _, id := range c.SOMEIP.Eventgroups {
		if g := s.groups[id]; g != nil {
			g.joined++
			g.add(c, w)
			return g, nil
		}
	}
	g := s.newGroup(c.SOMEIP.Eventgroups[0])
	g.joined = 1
	g.add(c, w)
	cfg := runtime.SubscribeConfig{Eventgroup: g.id, OnEvent: g.notify, OnState: g.state}
	for id, f := range g.events {
		cfg.Events = append(cfg.Events, id)
		cfg.Reliable = cfg.Reliable || f.codec.SOMEIP.Reliable
		cfg.Unreliable = cfg.Unreliable || !f.codec.SOMEIP.Reliable
	}
	var err error
	// The subscription is the group's and lasts longer than its first watcher.
	if g.sub, err = s.client.Subscribe(context.WithoutCancel(ctx), cfg); err != nil {
		return nil, err
	}
	s.groups[g.id] = g
	return g, nil
}

func (s *imported) newGroup(id uint16) *group {
	g := &group{service: s, id: id, events: map[uint16]*feed{}}
	for _, c := range s.codecs.events {
		if slices.Contains(c.SOMEIP.Eventgroups, id) {
			g.events[c.SOMEIP.ID] = &feed{codec: c}
		}
	}
	return g
}

func (s *imported) leave(g *group, c *eventCodec, w *watcher) {
	g.remove(c, w)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.joined--; g.joined == 0 {
		delete(s.groups, g.id)
		g.sub.Close()
	}
}

func (g *group) add(c *eventCodec, w *watcher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.events[c.SOMEIP.ID]
	if f.known {
		it := f.last
		it.Initial = true
		w.sink(it)
	}
	f.watchers = append(f.watchers, w)
}

func (g *group) remove(c *eventCodec, w *watcher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.events[c.SOMEIP.ID]
	f.watchers = slices.DeleteFunc(f.watchers, func(o *watcher) bool { return o == w })
}

// notify takes a notification from the stack.
func (g *group) notify(n runtime.Notification) {
	if g.service.over() {
		return // it is for those who watch what the instance is now
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.events[n.Event]
	if f == nil {
		return // an event that the interface does not have (CL-9)
	}
	field := f.codec.Field != nil
	if len(f.watchers) == 0 && !field {
		return
	}
	payload, err := f.codec.args.ToProto(make([]byte, 0, protoSize(n.Payload)), n.Payload)
	if err != nil {
		if f.lost++; f.lost == 1 {
			g.service.log.Warn("undecodable event", "instance", g.service.client.Key(), "event", f.codec.Name, "error", err)
		}
		return
	}
	if n.Peer != g.peer {
		g.peer, g.source = n.Peer, g.service.network+"/"+n.Peer.String()
	}
	it := bridge.Item{
		Payload: payload, Session: n.Session, Source: g.source, Received: time.Now(),
		Gap: f.lost, Initial: field && n.Initial, E2E: e2eStatus(n.E2E),
	}
	f.lost = 0
	if field {
		f.last, f.known = it, true
		f.last.Gap = 0
	}
	for _, w := range f.watchers {
		w.sink(it)
	}
}

// state ends the watches of a subscription that the server refused: whoever
// watches should know, and may try again.
func (g *group) state(st runtime.SubscriptionStatus) {
	if st.State != runtime.SubscriptionRefused {
		return
	}
	err := status.Unavailable(string(st.Reason), st.Since)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.events {
		for _, w := range f.watchers {
			select {
			case w.refused <- err:
			default:
			}
		}
	}
}
