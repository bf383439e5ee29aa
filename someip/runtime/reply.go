package runtime

import (
	"net/netip"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/tp"
)

// transport is how a message came to the client side.
type transport uint8

const (
	overUDP transport = iota
	overTCP
	multicast
)

// arrival is where a message to the client side came from, and how.
type arrival struct {
	by   transport
	from netip.AddrPort
	to   netip.AddrPort // the own socket, for segments
	conn *endpoint.Conn // over TCP

	socket endpoint.PacketSocket // by UDP, nil for a multicast group
}

// receiveClient takes what reaches the client side: answers and events, of a
// multicast group events only. Nothing here is ever answered (RC-6).
func (n *Network) receiveClient(a arrival, b []byte) {
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil || m.ProtocolVersion != someip.ProtocolVersion {
			n.unparsed(err)
			return // UDP-7: boundaries cannot be trusted
		}
		raw := b[:len(b)-len(rest)]
		b = rest
		if m.Type.TP() {
			n.receiveSegment(m, a)
			continue
		}
		n.stats.received.Add(1)
		n.receiveWhole(m, raw, a)
	}
}

// receiveWhole takes a message whose bytes are raw.
func (n *Network) receiveWhole(m someip.Message, raw []byte, a arrival) {
	switch {
	case !m.Code.Valid():
		n.stats.wrongReturnCode.Add(1)
	case m.Type == someip.Notification:
		n.receiveNotification(m, raw, a)
	case m.Type.IsReply() && a.by != multicast:
		n.receiveReply(m, raw, a)
	default:
		n.stats.wrongType.Add(1)
	}
}

// receiveSegment takes a segment of what is expected: of an event from its
// server, or of the answer to an outstanding call.
func (n *Network) receiveSegment(m someip.Message, a arrival) {
	var t *traits
	switch base := m.Type.Base(); {
	case base == someip.Notification:
		if r := n.sourceOf(m, a); r != nil {
			t = r.wiring.events[m.Method]
		}
	case base.IsReply() && a.by != multicast:
		if c := n.clientOf(m); c != nil && c.expects(m, a) {
			t = c.instance.wiring.responses[m.Method]
		}
	}
	if t == nil || t.tp == nil {
		n.stats.segments.Add(1) // TP-10
		return
	}
	raw := n.segment(tp.Path{From: a.from, To: a.to}, m, t)
	if raw == nil {
		return
	}
	defer release(raw)
	if whole, _, err := someip.ParseMessage(*raw); err == nil {
		n.stats.received.Add(1)
		n.receiveWhole(whole, *raw, a)
	}
}

func (n *Network) unparsed(err error) {
	if err != nil {
		n.stats.malformed.Add(1)
	} else {
		n.stats.wrongProtocol.Add(1)
	}
}

// sourceOf returns the instance that a notification is from. Only what comes from
// the offered endpoint, with the major version of the instance, is taken (10.3);
// what comes by multicast may have left from another port of the host.
func (n *Network) sourceOf(m someip.Message, a arrival) *remote {
	r := n.sources.find(source{m.Service, m.InterfaceVersion, a.by == overTCP, a.from})
	if r == nil && a.by == multicast {
		r = n.sources.find(source{m.Service, m.InterfaceVersion, false, netip.AddrPortFrom(a.from.Addr(), 0)})
	}
	if r == nil || a.by == overUDP && a.socket != r.udp || a.by == multicast && r.wiring.dtls != nil {
		return nil
	}
	return r
}

// receiveNotification gives an event to its subscriptions.
func (n *Network) receiveNotification(m someip.Message, raw []byte, a arrival) {
	if !someip.IsEvent(m.Method) {
		n.stats.wrongType.Add(1)
		return
	}
	r := n.sourceOf(m, a)
	if r == nil || !r.subscribed() { // CL-9
		n.stats.unexpected.Add(1)
		return
	}
	note := Notification{Event: m.Method, Session: m.Session, Reliable: a.by == overTCP, Peer: a.from}
	if t := r.wiring.events[m.Method]; t != nil && t.guard != nil {
		var ok bool
		if note.E2E, ok = t.guard.check(party{}, raw, &m, n); !ok {
			return
		}
	}
	note.Payload = m.Payload
	if !r.deliver(note) {
		n.stats.unexpected.Add(1)
	}
}

// clientOf returns the client that an answer is for.
func (n *Network) clientOf(m someip.Message) *Client {
	if r := n.cfg.ClientIDs; r.Contains(m.Client) {
		return n.clients[m.Client-r.First].Load()
	}
	return nil
}

// receiveReply settles the outstanding call that an answer belongs to (SES-3).
func (n *Network) receiveReply(m someip.Message, raw []byte, a arrival) {
	if c := n.clientOf(m); c == nil || !c.settle(m, raw, a) {
		n.stats.unmatched.Add(1) // late, doubled (case 25) or foreign
	}
}

// outstanding returns the call that m answers, or nil. c.mu is held.
func (c *Client) outstanding(m someip.Message, a arrival) *call {
	k := c.pending[m.Session]
	if k == nil || m.Service != c.key.Service || k.method != m.Method || k.to != a.from || k.conn != a.conn ||
		a.by == overUDP && a.socket != c.instance.udp {
		return nil
	}
	return k
}

// expects reports whether m answers a call.
func (c *Client) expects(m someip.Message, a arrival) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outstanding(m, a) != nil
}

// settle completes the call that m answers and reports whether there was one.
func (c *Client) settle(m someip.Message, raw []byte, a arrival) bool {
	c.mu.Lock()
	k := c.outstanding(m, a)
	if k == nil {
		c.mu.Unlock()
		return false
	}
	delete(c.pending, m.Session)
	c.mu.Unlock()
	k.resp.E2E, k.err = c.verify(&m, raw)
	k.resp.Payload = append([]byte(nil), m.Payload...)
	k.resp.Code, k.resp.Exception = m.Result(), m.Type == someip.Error
	k.done <- struct{}{}
	return true
}

// verify checks an answer that is protected. An error without payload was made by
// the server's stack, which protects nothing (RC-4).
func (c *Client) verify(m *someip.Message, raw []byte) (e2e.Result, error) {
	t := c.instance.wiring.responses[m.Method]
	if t == nil || t.guard == nil || m.Code != someip.OK && len(m.Payload) == 0 {
		return e2e.Result{}, nil
	}
	res, ok := t.guard.check(party{client: c.id}, raw, m, c.n)
	if !ok {
		return res, &E2EError{Result: res}
	}
	return res, nil
}
