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
		n.stats.received.Add(1)
		switch {
		case m.Type.TP():
			n.stats.segments.Add(1) // TP-10
		case !m.Code.Valid():
			n.stats.wrongReturnCode.Add(1)
		case m.Type.IsReply():
			n.receiveReply(m, from, conn)
		case m.Type == someip.Notification:
			by := udp
			if conn != nil {
				by = tcp
			}
			n.receiveNotification(m, from, by)
		default:
			n.stats.wrongType.Add(1)
		}
	}
}

// transport is how an event came.
type transport uint8

const (
	udp transport = iota
	tcp
	multicast
)

// receiveMulticast takes what reaches a multicast group: events and nothing else.
func (n *Network) receiveMulticast(from netip.AddrPort, b []byte) {
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil || m.ProtocolVersion != someip.ProtocolVersion {
			n.unparsed(err)
			return
		}
		b = rest
		n.stats.received.Add(1)
		if m.Type != someip.Notification {
			n.stats.wrongType.Add(1)
			continue
		}
		n.receiveNotification(m, from, multicast)
	}
}

func (n *Network) unparsed(err error) {
	if err != nil {
		n.stats.malformed.Add(1)
	} else {
		n.stats.wrongProtocol.Add(1)
	}
}

// receiveNotification gives an event to its subscriptions. Only what comes from the
// offered endpoint, with the major version of the instance, is taken (10.3); what
// comes by multicast may have left from another port of the host.
func (n *Network) receiveNotification(m someip.Message, from netip.AddrPort, by transport) {
	if !m.Code.Valid() || !someip.IsEvent(m.Method) {
		n.stats.wrongType.Add(1)
		return
	}
	sources := *n.sources.Load()
	r := sources[source{m.Service, m.InterfaceVersion, by == tcp, from}]
	if r == nil && by == multicast {
		r = sources[source{m.Service, m.InterfaceVersion, false, netip.AddrPortFrom(from.Addr(), 0)}]
	}
	note := Notification{
		Event: m.Method, Session: m.Session, Payload: m.Payload, Reliable: by == tcp, Peer: from,
	}
	if r == nil || !r.deliver(note) { // CL-9
		n.stats.unexpected.Add(1)
	}
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
