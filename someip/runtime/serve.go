package runtime

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/tp"
)

// exchange is what answering a request needs.
type exchange struct {
	port     *port
	header   someip.Header
	back     way
	traits   *traits // of the answer
	answered atomic.Bool
}

// answer sends the one answer of a request from the endpoint that it was sent to
// (UDP-4).
func (r *Request) answer(typ someip.MessageType, code someip.ReturnCode, payload []byte) error {
	if r.NoReturn || r.answered.Swap(true) {
		return ErrAnswered
	}
	defer r.port.done()
	n := r.port.n
	if !r.header.MayAnswer() && code != someip.OK {
		return nil // RC-1: an error never goes back to a request that came with a code
	}
	var tooLarge error
	if len(payload) > n.limitOf(r.traits, r.back.conn != nil) { // UDP-2: case 11
		typ, code, payload, tooLarge = someip.Error, someip.NotOK, nil, ErrTooLarge
	}
	m := r.header.Response(payload)
	m.Type, m.Code = typ, code
	err := r.back.send(m, r.traits, party{r.back.to, r.header.Client})
	if err != nil {
		n.stats.sendErrors.Add(1)
	}
	return errors.Join(tooLarge, err)
}

// receive takes what reaches a server port: a datagram, or one message of a
// connection. The order of checks decides which error a faulty request gets
// (1.6); only requests get one, and only these of the stack carry no payload (RC-4).
func (p *port) receive(from netip.AddrPort, conn *endpoint.Conn, b []byte) {
	n := p.n
	back := way{conn: conn, udp: p.packets, to: from, n: n}
	if from == p.addr() {
		n.stats.wrongType.Add(1) // RC-6: our own words
		return
	}
	for first := true; len(b) > 0; first = false {
		m, rest, err := someip.ParseMessage(b)
		if err != nil {
			n.stats.malformed.Add(1)
			return // UDP-7: case 1
		}
		if m.ProtocolVersion != someip.ProtocolVersion {
			n.stats.wrongProtocol.Add(1)
			// Behind another message it is more likely junk than a header.
			if first && !n.cfg.SilentOnWrongProtocol {
				n.refuse(m.Header, back, someip.WrongProtocolVersion)
			}
			return
		}
		raw := b[:len(b)-len(rest)]
		b = rest
		if m.Type.TP() {
			p.segment(m, back)
			continue
		}
		n.stats.received.Add(1)
		p.dispatch(m, raw, back)
	}
}

// segment takes a segment of a request, and serves the request if it is whole.
func (p *port) segment(m someip.Message, back way) {
	var t *traits
	if o, _ := p.find(m.Header); o != nil {
		t = o.wiring.requests[m.Method]
	}
	if base := m.Type.Base(); t == nil || t.tp == nil || base != someip.Request && base != someip.RequestNoReturn {
		p.n.stats.segments.Add(1) // TP-10
		return
	}
	raw := p.n.segment(tp.Path{From: back.to, To: p.addr()}, m, t)
	if raw == nil {
		return
	}
	defer release(raw)
	if whole, _, err := someip.ParseMessage(*raw); err == nil {
		p.n.stats.received.Add(1)
		p.dispatch(whole, *raw, back)
	}
}

// dispatch takes a whole message, whose bytes are raw.
func (p *port) dispatch(m someip.Message, raw []byte, back way) {
	n := p.n
	switch {
	case m.Type != someip.Request && m.Type != someip.RequestNoReturn:
		n.stats.wrongType.Add(1) // case 10, and what only clients get
		return
	case !m.Code.Valid(), m.Code != someip.OK && n.cfg.Strict:
		n.stats.wrongReturnCode.Add(1) // case 5
		return
	case m.Service == someip.ServiceSD:
		n.stats.unknownService.Add(1)
		return
	}
	o, code := p.find(m.Header)
	switch code {
	case someip.OK:
		p.serve(o, m, raw, back)
		return
	case someip.UnknownService:
		n.stats.unknownService.Add(1)
	case someip.WrongInterfaceVersion:
		n.stats.wrongInterface.Add(1)
	case someip.UnknownMethod:
		n.stats.unknownMethod.Add(1)
	default:
		n.stats.wrongType.Add(1)
	}
	n.refuse(m.Header, back, code)
}

// find applies the checks 4 to 7: service, version, method, type (case 7).
func (p *port) find(h someip.Header) (*Offering, someip.ReturnCode) {
	list := (*p.services.Load())[h.Service]
	if len(list) == 0 {
		return nil, someip.UnknownService
	}
	for _, o := range list {
		if o.key.Major == h.InterfaceVersion { // SV-8
			return o, o.check(h)
		}
	}
	return nil, someip.WrongInterfaceVersion
}

// check applies the checks of method and type.
func (o *Offering) check(h someip.Header) someip.ReturnCode {
	if o.cfg.Handler == nil || h.Method == 0 || h.Method == 0x7FFF || someip.IsEvent(h.Method) {
		return someip.UnknownMethod
	}
	if o.methods == nil {
		return someip.OK
	}
	fireAndForget, ok := o.methods[h.Method]
	switch {
	case !ok:
		return someip.UnknownMethod
	case fireAndForget != (h.Type == someip.RequestNoReturn):
		return someip.WrongMessageType
	}
	return someip.OK
}

// serve hands a request to the handler.
func (p *port) serve(o *Offering, m someip.Message, raw []byte, back way) {
	var verdict e2e.Result
	if t := o.wiring.requests[m.Method]; t != nil && t.guard != nil {
		var ok bool
		if verdict, ok = t.guard.check(party{back.to, m.Client}, raw, &m, p.n); !ok {
			return
		}
	}
	r := &Request{
		E2E:     verdict,
		Payload: m.Payload, Peer: back.to, Method: m.Method, Client: m.Client, Session: m.Session,
		NoReturn: m.Type == someip.RequestNoReturn, Reliable: back.conn != nil,
	}
	r.port, r.header, r.back, r.traits = p, m.Header, back, o.wiring.responses[m.Method]
	if !r.NoReturn {
		p.requests.Add(1)
		p.n.requests.count.Add(1)
	}
	o.cfg.Handler.ServeSOMEIP(o.ctx, r)
}

// refuse answers a request with an error of the stack, if it may be answered.
func (n *Network) refuse(h someip.Header, back way, code someip.ReturnCode) {
	if !h.MayAnswer() {
		return
	}
	if err := back.send(h.Failure(code, true, nil), nil, party{}); err != nil {
		n.stats.sendErrors.Add(1)
	}
}
