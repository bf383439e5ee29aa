package runtime

// Kill ends a stack as if its process had been killed: no message leaves.
func Kill(s *Stack) {
	for _, n := range s.networks {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		_ = n.end()
	}
}
