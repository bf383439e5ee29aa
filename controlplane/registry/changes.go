package registry

import "maps"

// Changes names what is different since they were taken last. Names that are in
// no map of the snapshot any more are gone.
type Changes struct {
	Nodes      map[string]bool // ids
	Services   map[string]bool // mesh names
	Interfaces map[string]bool // full names of those whose set of instances or default changed
}

// Subscription collects changes for one reader. Changes that were not taken yet
// merge, so a slow reader costs at most one entry for each name and never holds
// the registry up.
type Subscription struct {
	r       *Registry
	ready   chan struct{}
	pending Changes // guarded by Registry.mu
}

// Subscribe returns the present snapshot and a subscription to what comes after.
func (r *Registry) Subscribe() (*Snapshot, *Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Subscription{r: r, ready: make(chan struct{}, 1)}
	s.reset()
	r.subs[s] = struct{}{}
	return r.snap.Load(), s
}

// Ready receives once there is something to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the changes since the last Take and the snapshot that has them.
func (s *Subscription) Take() (Changes, *Snapshot) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	c := s.pending
	s.reset()
	return c, s.r.snap.Load()
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	delete(s.r.subs, s)
}

func (s *Subscription) reset() {
	s.pending = Changes{Nodes: map[string]bool{}, Services: map[string]bool{}, Interfaces: map[string]bool{}}
}

func (s *Subscription) add(c Changes) {
	maps.Copy(s.pending.Nodes, c.Nodes)
	maps.Copy(s.pending.Services, c.Services)
	maps.Copy(s.pending.Interfaces, c.Interfaces)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
