package xds

import (
	"maps"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// subscription is one resource type on one stream; Cache.mu guards it.
//
// At most one response is under way. What changes meanwhile merges into dirty and
// goes out with the acknowledgement, so a slow proxy costs no queue, and a refusal
// is known to mean that response.
type subscription struct {
	wildcard bool
	names    map[string]bool // subscribed by name
	held     bool            // the proxy came with resources of an earlier stream

	known map[string]string // what the proxy has: name → version
	dirty map[string]bool   // names to look at
	force map[string]bool   // of these, names to send even if the proxy has them
	// retry is groups of a refused response that go out one after the other, each
	// halved again if it is refused, until the bad resource is alone.
	retry [][]string

	flight   *flight
	answered bool

	delta *deltaWatch
	sotw  *sotwWatch
	world world

	sentVersion, ackedVersion string
	sentAt, ackedAt           time.Time
}

// flight is a response that is not acknowledged yet.
type flight struct {
	nonce  string // "" until it is sent
	before map[string]string
	names  []string // set and removed
	world  string   // version of a state-of-the-world response
}

func newSubscription() *subscription {
	return &subscription{
		names: map[string]bool{}, known: map[string]string{},
		dirty: map[string]bool{}, force: map[string]bool{},
	}
}

func (s *subscription) wants(name string) bool {
	return s.wildcard || s.names[name] || s.known[name] != ""
}

// start takes the first request of a type on a stream.
func (s *subscription) start(sub cachev3.Subscription, have map[string]string, set *set) {
	s.wildcard = sub.IsWildcard()
	s.held = len(have) > 0
	maps.Copy(s.known, have)
	for name := range sub.SubscribedResources() {
		s.names[name] = true
		s.dirty[name] = true
	}
	for name := range have {
		s.dirty[name] = true
	}
	if s.wildcard {
		for name := range set.resources {
			s.dirty[name] = true
		}
	}
}

// subscribe takes a change of the subscribed names. A name that is subscribed anew
// is sent again: the proxy may have thrown away what it had.
func (s *subscription) subscribe(wildcard bool, add, remove []string, set *set) {
	if wildcard && !s.wildcard {
		for name := range set.resources {
			s.dirty[name] = true
		}
	}
	s.wildcard = wildcard
	for _, name := range add {
		if name != "*" {
			s.names[name], s.dirty[name], s.force[name] = true, true, true
		}
	}
	for _, name := range remove {
		delete(s.names, name)
		if s.wildcard {
			// The proxy may keep it for the wildcard: tell it what is true.
			s.dirty[name], s.force[name] = true, true
			continue
		}
		delete(s.known, name)
		delete(s.dirty, name)
		delete(s.force, name)
	}
}

// next returns the names to look at for the next response.
func (s *subscription) next() []string {
	if len(s.retry) > 0 {
		group := s.retry[0]
		s.retry = s.retry[1:]
		return group
	}
	return slices.Sorted(maps.Keys(s.dirty))
}

// more reports whether there is anything to look at.
func (s *subscription) more() bool { return len(s.retry)+len(s.dirty) > 0 }

// acked takes the acknowledgement of the response under way.
func (s *subscription) acked(now time.Time) {
	s.flight = nil
	s.ackedVersion, s.ackedAt = s.sentVersion, now
}

// refused takes the refusal of the response under way and returns the resource
// that is refused if it was alone. Of several, one may have spoilt all, so each
// half goes out again by itself.
func (s *subscription) refused() (alone string) {
	f := s.flight
	s.flight = nil
	for _, name := range f.names {
		if v, ok := f.before[name]; ok {
			s.known[name] = v
		} else {
			delete(s.known, name)
		}
	}
	if len(f.names) == 1 {
		return f.names[0]
	}
	for _, name := range f.names {
		s.force[name] = true
	}
	half := len(f.names) / 2
	s.retry = append([][]string{f.names[:half], f.names[half:]}, s.retry...)
	return ""
}

// build makes the delta response for names, and notes it as under way. It returns
// nil if there is nothing to say.
func (s *subscription) build(typeURL string, set *set, names []string) *discoveryv3.DeltaDiscoveryResponse {
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURL, SystemVersionInfo: versionName(set.version)}
	f := &flight{before: map[string]string{}}
	for _, name := range s.makeBeforeBreak(set, names) {
		had, has := s.known[name]
		force := s.force[name]
		delete(s.dirty, name)
		delete(s.force, name)
		r := set.resources[name]
		switch {
		case !s.wants(name):
			continue
		case r == nil && (!has || !removable(typeURL)):
			continue
		case r == nil:
			resp.RemovedResources = append(resp.RemovedResources, name)
			delete(s.known, name)
		case set.apart[name] != nil, had == r.Version && !force:
			continue
		default:
			resp.Resources = append(resp.Resources, &discoveryv3.Resource{Name: name, Version: r.Version, Resource: r.any})
			s.known[name] = r.Version
		}
		if has {
			f.before[name] = had
		}
		f.names = append(f.names, name)
	}
	// A proxy that starts waits for an answer to each wildcard, be it empty (CAR-49).
	if len(f.names) == 0 && (s.answered || s.held || !s.wildcard) {
		return nil
	}
	s.flight = f
	return resp
}

// makeBeforeBreak leaves out, for now, what takes the endpoints of a cluster away
// if the response gives endpoints to others: a service that changes from local to
// remote has none for a moment if a proxy takes them in the wrong order, and a
// proxy takes one response in any order. What is left out goes with the
// acknowledgement.
func (s *subscription) makeBeforeBreak(set *set, names []string) []string {
	gives := false
	var later []string
	for _, name := range names {
		r := set.resources[name]
		if r == nil || !s.wants(name) || set.apart[name] != nil || s.known[name] == r.Version {
			continue
		}
		switch {
		case !r.takesAway:
			gives = gives || r.Type == resourcev3.EndpointType
		case s.known[name] != "" && !s.force[name]:
			later = append(later, name)
		}
	}
	if !gives || len(later) == 0 {
		return names
	}
	for _, name := range later {
		s.dirty[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(later, name) })
}

// removable reports whether a proxy heeds the removal of a resource. Envoy ignores
// that of endpoints and routes: they go with their clusters and listeners.
func removable(typeURL string) bool { return typeURL == types[0] || typeURL == types[2] }
