package runtime

import (
	"net/netip"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// receiveClient takes what reaches the client side: answers and events. Nothing
// here is ever answered (RC-6).
func (n *Network) receiveClient(from netip.AddrPort, conn *endpoint.Conn, b []byte) {
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil || m.ProtocolVersion != someip.ProtocolVersion {
			n.unparsed(err)
			return // UDP-7: boundaries cannot be trusted
		}
		b = rest
		switch {
		case m.Type.TP():
			n.stats.segments.Add(1) // TP-10
		case !m.Code.Valid():
			n.stats.wrongReturnCode.Add(1)
		case m.Type.IsReply():
			n.receiveReply(m, from, conn)
		case m.Type == someip.Notification:
			n.receiveNotification(m, from, conn != nil)
		default:
			n.stats.wrongType.Add(1)
		}
	}
}

// receiveMulticast takes what reaches a multicast group: events and nothing else.
func (n *Network) receiveMulticast(from netip.AddrPort, b []byte) {
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil || m.ProtocolVersion != someip.ProtocolVersion {
			n.unparsed(err)
			return
		}
		b = rest
		if m.Type != someip.Notification {
			n.stats.wrongType.Add(1)
			continue
		}
		n.receiveNotification(m, from, false)
	}
}

func (n *Network) unparsed(err error) {
	if err != nil {
		n.stats.malformed.Add(1)
	} else {
		n.stats.wrongProtocol.Add(1)
	}
}

func (n *Network) receiveNotification(m someip.Message, from netip.AddrPort, reliable bool) {
	if !m.Code.Valid() || !someip.IsEvent(m.Method) {
		n.stats.wrongType.Add(1)
		return
	}
	n.receiveEvent(source{m.Service, m.InterfaceVersion, reliable, from}, Notification{
		Event: m.Method, Session: m.Session, Payload: m.Payload, Reliable: reliable, Peer: from,
	})
}

// receiveReply settles the outstanding call that an answer belongs to (SES-3).
func (n *Network) receiveReply(m someip.Message, from netip.AddrPort, conn *endpoint.Conn) {
	if r := n.cfg.ClientIDs; r.Contains(m.Client) {
		if c := n.clients[m.Client-r.First].Load(); c != nil && c.settle(m, from, conn) {
			return
		}
	}
	n.stats.unmatched.Add(1) // late, doubled (case 25) or foreign
}

// settle completes the call that m answers and reports whether there was one.
func (c *Client) settle(m someip.Message, from netip.AddrPort, conn *endpoint.Conn) bool {
	if m.Service != c.key.Service {
		return false
	}
	c.mu.Lock()
	k := c.pending[m.Session]
	if k == nil || k.method != m.Method || k.to != from || k.conn != conn {
		c.mu.Unlock()
		return false
	}
	delete(c.pending, m.Session)
	c.mu.Unlock()
	k.resp = Response{
		Payload:   append([]byte(nil), m.Payload...),
		Code:      m.Result(),
		Exception: m.Type == someip.Error,
	}
	k.done <- struct{}{}
	return true
}
