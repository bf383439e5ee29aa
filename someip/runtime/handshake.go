package runtime

import (
	"carisma.dev/gateway/someip/endpoint"
)

// HandshakeFailed implements [endpoint.HandshakeHandler].
func (p *port) HandshakeFailed(err *endpoint.HandshakeError) { p.n.handshakeFailed(err) }

func (n *Network) handshakeFailed(err *endpoint.HandshakeError) {
	n.stats.handshakes.Add(1)
	n.log.Warn("handshake.failed", "peer", err.Peer, "error", err.Err)
}

// watchHandshakes has h told of the handshakes of a socket, if it does any.
func watchHandshakes(s endpoint.PacketSocket, h endpoint.HandshakeHandler) {
	if s, ok := s.(endpoint.HandshakeSocket); ok {
		s.OnHandshakeFailure(h)
	}
}

// clientShakes is told of the handshakes of a socket of the client side.
type clientShakes struct {
	n      *Network
	socket endpoint.PacketSocket
}

// HandshakeFailed implements [endpoint.HandshakeHandler]: calls that wait for the
// server fail at once, for their requests were not sent.
func (h clientShakes) HandshakeFailed(err *endpoint.HandshakeError) {
	h.n.handshakeFailed(err)
	for i := range h.n.clients {
		c := h.n.clients[i].Load()
		if c == nil || c.instance.udp != h.socket {
			continue
		}
		c.fail(func(k *call) bool { return k.conn == nil && k.to == err.Peer },
			&UnavailableError{Key: c.key, Reason: ReasonUnreachable, Since: h.n.now(), Err: err})
	}
}
