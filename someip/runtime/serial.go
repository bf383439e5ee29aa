package runtime

import "sync"

// serial runs functions one after the other, in the order in which they were
// added, on the goroutine of whoever adds the first. So callbacks of the user run
// in order and without a lock of the package held, and may call back into it.
type serial struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// add queues f. It may be called with locks held.
func (s *serial) add(f func()) {
	s.mu.Lock()
	s.queue = append(s.queue, f)
	s.mu.Unlock()
}

// run runs what is queued, unless another goroutine is at it, which then runs the
// rest too. It must be called without locks held.
func (s *serial) run() {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return
	}
	s.running = true
	for len(s.queue) > 0 {
		batch := s.queue
		s.queue = nil
		s.mu.Unlock()
		for _, f := range batch {
			f()
		}
		s.mu.Lock()
	}
	s.running = false
	s.mu.Unlock()
}
