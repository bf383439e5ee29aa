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

// SetSession makes s the last session id that a client has used.
func SetSession(c *Client, s uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}
