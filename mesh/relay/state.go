package relay

import (
	"maps"
	"sync"
	"time"
)

// State is what the relay knows of Envoy's stream.
type State struct {
	Connected bool      `json:"connected"` // a stream goes through to central
	Since     time.Time `json:"since,omitzero"`
	Refused   int       `json:"refused"` // streams of another node or of a second Envoy
	// Types has the last answer of Envoy for each resource type.
	Types map[string]TypeState `json:"types,omitempty"`
}

// TypeState is Envoy's last answer for a resource type.
type TypeState struct {
	Acked  time.Time `json:"acked,omitzero"`  // of the last ACK of a response with resources
	Nacked time.Time `json:"nacked,omitzero"` // of the last NACK
	Reason string    `json:"reason,omitempty"`
}

// The types that have to be acknowledged before Envoy listens.
const (
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// Configured tells whether Envoy took its listeners and their routes since the
// time given: from then on it answers callers.
func (s State) Configured(since time.Time) bool {
	return s.Types[listenerType].Acked.After(since) && s.Types[routeType].Acked.After(since)
}

type tracker struct {
	mu       sync.Mutex
	state    State
	changed  func(State)
	clusters func(map[string]bool)
}

func (t *tracker) get() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.state
	s.Types = maps.Clone(s.Types)
	return s
}

func (t *tracker) update(change func(*State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.state)
	if t.changed != nil {
		s := t.state
		s.Types = maps.Clone(s.Types)
		t.changed(s)
	}
}

func (t *tracker) connected() {
	t.update(func(s *State) { s.Connected, s.Since = true, time.Now() })
}

func (t *tracker) disconnected() {
	t.update(func(s *State) { s.Connected, s.Since = false, time.Now() })
}

func (t *tracker) answer(resp response, req request) {
	t.update(func(s *State) {
		if s.Types == nil {
			s.Types = map[string]TypeState{}
		}
		ts := s.Types[resp.typeURL]
		switch {
		case req.failed:
			ts.Nacked, ts.Reason = time.Now(), req.reason
		case resp.resources > 0:
			ts.Acked = time.Now()
		}
		s.Types[resp.typeURL] = ts
		if !req.failed && len(resp.clusters) > 0 && t.clusters != nil {
			t.clusters(resp.clusters)
		}
	})
}
