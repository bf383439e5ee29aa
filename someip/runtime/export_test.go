package runtime

import "net/netip"

// Kill ends a stack as if its process had been killed: no message leaves.
func Kill(s *Stack) {
	for _, n := range s.networks {
		n.mu.Lock()
		n.closed = true
		n.mu.Unlock()
		_ = n.end()
	}
	if s.links != nil {
		_ = s.links.Close()
	}
}

// SetSession makes s the last session id that a client has used.
func SetSession(c *Client, s uint16) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

// ReceiveAtServer gives a datagram to the UDP port of an offering.
func ReceiveAtServer(o *Offering, from netip.AddrPort, b []byte) { o.udp.receive(from, nil, b) }

// ReceiveAtClient gives a datagram to the client side of a network.
func ReceiveAtClient(n *Network, from netip.AddrPort, b []byte) {
	n.receiveClient(arrival{by: overUDP, from: from, to: n.udp.LocalAddr(), socket: n.udp}, b)
}

// Ended reports whether an offering was stopped or its network closed.
func Ended(o *Offering) bool {
	o.n.mu.Lock()
	defer o.n.mu.Unlock()
	return o.stopped || o.n.closed
}

// AbortLink closes the TCP connections of the client side.
func AbortLink(n *Network) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		if c := l.conn.Load(); c != nil {
			c.Abort()
		}
	}
}
