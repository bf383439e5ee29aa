package someipadapter

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// sightings is what service discovery told of the instances of others. It is
// fed on the receive goroutine, so that must not wait; for each instance it
// holds what changed and was not taken yet, and the present state if it is there.
type sightings struct {
	mu      sync.Mutex
	seen    map[someip.InstanceKey]runtime.Availability
	news    map[someip.InstanceKey]news
	rivals  map[someip.InstanceKey]rival
	standby map[someip.InstanceKey]chan struct{} // closed when what is seen of the instance changes
	changed chan struct{}                        // closed with each change
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
		rivals:  map[someip.InstanceKey]rival{},
		standby: map[someip.InstanceKey]chan struct{}{},
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
	delete(s.rivals, av.Key) // it is seen as what it is
	if av.Up {
		s.seen[av.Key] = av
	} else {
		delete(s.seen, av.Key)
	}
	if over := s.standby[av.Key]; over != nil {
		close(over)
		delete(s.standby, av.Key)
	}
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
		list = append(list, av)
	}
	return list
}

// rivalTime is how long another host's offer keeps ours away after it was heard
// while ours stood. By then it is seen as what it is, or does not come again.
const rivalTime = 3 * time.Second

// rival notes that another host was heard to offer what we offer.
func (s *sightings) rival(key someip.InstanceKey, peer netip.AddrPort) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rivals[key] = rival{peer, time.Now()}
	return conflictError(key, peer)
}

type rival struct {
	peer  netip.AddrPort
	heard time.Time
}

// conflict returns an error if another host offers the instance: a
// *bridge.StandbyError if that is a gateway.
func (s *sightings) conflict(key someip.InstanceKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if av, ok := s.seen[key]; ok {
		at := av.Endpoints.UDP
		if !at.IsValid() {
			at = av.Endpoints.TCP
		}
		if node := markedBy(av.Configuration); node != "" {
			over := s.standby[key]
			if over == nil {
				over = make(chan struct{})
				s.standby[key] = over
			}
			return &bridge.StandbyError{Node: node, Over: over}
		}
		return conflictError(key, at)
	}
	r, ok := s.rivals[key]
	if !ok {
		return nil
	}
	if time.Since(r.heard) < rivalTime {
		return conflictError(key, r.peer)
	}
	delete(s.rivals, key)
	return nil
}

func conflictError(key someip.InstanceKey, at netip.AddrPort) error {
	return fmt.Errorf("a native service at %v offers the same ids: %v", at.Addr(), key)
}

// reset makes everything that is there news again.
func (s *sightings) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, over := range s.standby {
		close(over)
	}
	clear(s.standby)
	clear(s.seen)
	clear(s.news)
}
