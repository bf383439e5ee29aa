package sd

import "net/netip"

// parcel is a message to one destination that still takes entries.
type parcel struct {
	to  *peer // nil: the multicast group
	msg Message
	n   int // bytes of the SD payload
}

// post puts an entry with its options into the message to a destination; all
// entries to one destination that result from one event share a message (SV-6a,
// CL-6) up to the size limit. nil stands for the multicast group.
func (m *Machine) post(to *peer, e Entry, opts ...Option) {
	if m.down {
		return
	}
	p := m.parcel(to)
	if !p.fits(1, opts, m.cfg.MaxPayload) {
		m.seal(p)
	}
	p.add(e, opts)
}

// postPair posts two entries with the same options that must stay together, in
// one message and adjacent (SUB-5).
func (m *Machine) postPair(to *peer, first, second Entry, opts ...Option) {
	if m.down {
		return
	}
	p := m.parcel(to)
	if !p.fits(2, opts, m.cfg.MaxPayload) {
		m.seal(p)
	}
	p.add(first, opts)
	p.add(second, opts)
}

func (m *Machine) parcel(to *peer) *parcel {
	for _, p := range m.parcels {
		if p.to == to {
			return p
		}
	}
	var p *parcel
	if n := len(m.parcels); n < cap(m.parcels) && m.parcels[:n+1][n] != nil {
		m.parcels = m.parcels[:n+1] // one that was used before
		p = m.parcels[n]
	} else {
		p = new(parcel)
		m.parcels = append(m.parcels, p)
	}
	p.to = to
	p.reset()
	return p
}

func (p *parcel) reset() {
	p.msg.Entries, p.msg.Options, p.n = p.msg.Entries[:0], p.msg.Options[:0], fixedSize
}

func (p *parcel) fits(entries int, opts []Option, limit int) bool {
	n := p.n + entries*entrySize
	if len(opts) > 0 && p.find(opts) < 0 {
		if len(p.msg.Options)+len(opts) > maxOptions {
			return false
		}
		for i := range opts {
			n += opts[i].size()
		}
	}
	return n <= limit || len(p.msg.Entries) == 0
}

func (p *parcel) add(e Entry, opts []Option) {
	if len(opts) > 0 {
		at := p.find(opts)
		if at < 0 {
			at = len(p.msg.Options)
			p.msg.Options = append(p.msg.Options, opts...)
			for i := range opts {
				p.n += opts[i].size()
			}
		}
		e.Index1, e.Count1 = uint8(at), uint8(len(opts))
	}
	p.msg.Entries = append(p.msg.Entries, e)
	p.n += entrySize
}

// find returns where the options are already, so that entries share them, or -1.
func (p *parcel) find(opts []Option) int {
next:
	for at := 0; at+len(opts) <= len(p.msg.Options); at++ {
		for i := range opts {
			if !p.msg.Options[at+i].equal(&opts[i]) {
				continue next
			}
		}
		return at
	}
	return -1
}

// seal makes a datagram of the parcel and empties it.
func (m *Machine) seal(p *parcel) {
	if len(p.msg.Entries) == 0 {
		return
	}
	out := &m.multicast
	send := Send{To: netip.AddrPortFrom(m.cfg.Group, m.cfg.Port), Multicast: true}
	if p.to != nil {
		out, send = &p.to.out, Send{To: m.routable(p.to.at)}
		p.to.addressed = true
	}
	p.msg.Session, p.msg.Flags = out.next()
	p.msg.Flags |= FlagUnicast
	if m.cfg.InitialDataControl {
		p.msg.Flags |= FlagInitialData
	}
	// Entries and options were checked when they were made, so nothing is out of range.
	if data, err := p.msg.Append(make([]byte, 0, 16+p.n)); err == nil {
		send.Data = data
		m.sends = append(m.sends, send)
		m.stats.Sent++
	}
	p.reset()
}

// routable gives a link-local address the zone of the network, which keys do not
// have (case 20).
func (m *Machine) routable(at netip.AddrPort) netip.AddrPort {
	if zone := m.cfg.Address.Zone(); zone != "" && at.Addr().IsLinkLocalUnicast() {
		return netip.AddrPortFrom(at.Addr().WithZone(zone), at.Port())
	}
	return at
}

// emit adds an action that comes before what is sent.
func (m *Machine) emit(a Action) { m.acts = append(m.acts, a) }

// emitAfter adds an action that comes after what is sent.
func (m *Machine) emitAfter(a Action) { m.late = append(m.late, a) }

// flush returns the actions of one event in order.
func (m *Machine) flush() []Action {
	for _, p := range m.parcels {
		m.seal(p)
		p.to = nil
	}
	m.parcels = m.parcels[:0]
	n := len(m.acts) + len(m.sends) + len(m.late)
	if n == 0 {
		return nil
	}
	all := make([]Action, 0, n)
	all = append(all, m.acts...)
	for _, s := range m.sends {
		all = append(all, s)
	}
	all = append(all, m.late...)
	clear(m.acts)
	clear(m.sends)
	clear(m.late)
	m.acts, m.sends, m.late = m.acts[:0], m.sends[:0], m.late[:0]
	return all
}
