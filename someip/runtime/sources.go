package runtime

import (
	"net/netip"
	"slices"
	"sync"
)

// source is what tells from which instance a notification is: the instance id
// is not on the wire. Port 0 stands for any port of the host, for events received
// by multicast, where that is unambiguous.
type source struct {
	service  uint16
	major    uint8
	reliable bool
	from     netip.AddrPort
}

// sources are the instances whose events are wanted, by where these come from.
type sources struct {
	mu sync.RWMutex
	by map[source][]*remote
}

// find returns the one instance at a source, or nil.
func (s *sources) find(at source) *remote {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if list := s.by[at]; len(list) == 1 {
		return list[0]
	}
	return nil
}

// list enters r under its state as it is now, or takes it out. n.mu is held.
func (s *sources) list(r *remote) {
	var now *remoteState
	if st := r.state.Load(); st.Up && r.subscribed() && r.users > 0 {
		now = st
	}
	if now == r.listed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range r.listed.sources() {
		s.by[at] = slices.DeleteFunc(s.by[at], func(o *remote) bool { return o == r })
		if len(s.by[at]) == 0 {
			delete(s.by, at)
		}
	}
	for at := range now.sources() {
		s.by[at] = append(s.by[at], r)
	}
	r.listed = now
}

// sources yields where the events of an instance come from.
func (s *remoteState) sources() func(yield func(source) bool) {
	return func(yield func(source) bool) {
		if s == nil {
			return
		}
		at := source{service: s.Key.Service, major: s.Key.Major}
		if udp := s.Endpoints.UDP; udp.IsValid() {
			for _, at.from = range []netip.AddrPort{udp, netip.AddrPortFrom(udp.Addr(), 0)} {
				if !yield(at) {
					return
				}
			}
		}
		if s.Endpoints.TCP.IsValid() {
			at.reliable, at.from = true, s.Endpoints.TCP
			yield(at)
		}
	}
}
