package someipadapter

import (
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// sightings is what service discovery told of the instances of others. It is
// fed on the receive goroutine, so that must not wait; for each instance it
// holds the present state and, if that was not taken yet, that it went before.
type sightings struct {
	mu      sync.Mutex
	seen    map[someip.InstanceKey]runtime.Availability
	news    map[someip.InstanceKey]news
	changed chan struct{} // closed with each change
}

// news is what changed of one instance since it was taken last.
type news struct {
	went *runtime.Availability // it went, or went and came again
	now  runtime.Availability
}

func newSightings() *sightings {
	return &sightings{
		seen:    map[someip.InstanceKey]runtime.Availability{},
		news:    map[someip.InstanceKey]news{},
		changed: make(chan struct{}),
	}
}

// add takes what the stack observed.
func (s *sightings) add(av runtime.Availability) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.news[av.Key]
	n.now = av
	if !av.Up {
		n.went = &av
	}
	s.news[av.Key] = n
	s.seen[av.Key] = av
	close(s.changed)
	s.changed = make(chan struct{})
}

// take returns the news since the last call, and a channel that is closed when
// there are more.
func (s *sightings) take() (map[someip.InstanceKey]news, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.news
	s.news = map[someip.InstanceKey]news{}
	return taken, s.changed
}

// up returns the instances that are there.
func (s *sightings) up() []runtime.Availability {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []runtime.Availability
	for _, av := range s.seen {
		if av.Up {
			list = append(list, av)
		}
	}
	return list
}

// native returns the offer of an instance by another host, and a channel that is
// closed when that may have changed.
func (s *sightings) native(key someip.InstanceKey) (av runtime.Availability, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[key], s.changed
}

// reset makes everything that is there news again.
func (s *sightings) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
	clear(s.news)
}
