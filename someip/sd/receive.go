package sd

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Receive takes a datagram that arrived on the SD port. Multicast says that it
// was sent to the group. The bytes are not kept.
//
// Whatever is wrong with it is counted in Stats and not answered, but for
// Subscribes that get a Nack (9.5).
func (m *Machine) Receive(now time.Time, from netip.AddrPort, multicast bool, datagram []byte) []Action {
	from = normal(from)
	switch {
	case from == m.own: // the echo of what we said to the group, or who looks like it
		m.stats.Own++
		return nil
	case from.Addr() == m.own.Addr() && !m.cfg.AllowOwnAddress:
		m.stats.Own++
		m.claimed(now, &m.claimedAt, from, from, someip.InstanceKey{})
		return m.flush()
	case from.Port() != m.cfg.Port && !m.cfg.AnySourcePort: // case 73
		m.stats.SourcePort++
		return nil
	case !m.inSubnet(from.Addr()):
		m.stats.SourceAddress++
		return nil
	}
	if m.down {
		return nil
	}
	for len(datagram) > 0 {
		rest, err := m.in.Parse(datagram)
		if err != nil { // boundaries cannot be trusted any more (UDP-7)
			m.stats.Malformed++
			break
		}
		m.receive(now, from, multicast, datagram[:len(datagram)-len(rest)])
		datagram = rest
	}
	return m.flush()
}

// receive handles one message, which is parsed in m.in.
func (m *Machine) receive(now time.Time, from netip.AddrPort, multicast bool, raw []byte) {
	m.stats.Received++
	if m.in.OptionErr != nil {
		m.stats.BadOptions++
	}
	p := m.peer(now, m.identity(from))
	if p == nil {
		m.stats.PeerLimit++
		return
	}
	this, other := p.path(multicast)
	if this.duplicate(now, m.hash(raw), m.cfg.DuplicateWindow) {
		m.stats.Duplicates++
		return
	}
	if m.in.Session == 0 {
		m.stats.NoSession++
	}
	v, lost := this.observe(m.in.Session, m.in.Flags)
	m.stats.SessionGaps += uint64(lost) // RB-8
	if v == verdictRebooted {
		other.restartExpected = other.seen // RB-6
		m.rebooted(now, p, multicast)
	}
	p.initialData = m.in.Flags&FlagInitialData != 0
	if multicast {
		m.heard(now)
	}
	m.delayed = false
	for i := range m.in.Entries {
		m.receiveEntry(now, p, multicast, &m.in.Entries[i])
	}
}

// identity returns who sent a message: the source, or what an SD endpoint option
// says instead, if that can be (RB-3).
func (m *Machine) identity(from netip.AddrPort) netip.AddrPort {
	if len(m.in.Options) == 0 || !m.in.Options[0].IsSDEndpoint() {
		return from
	}
	at := normal(m.in.Options[0].Endpoint)
	if m.in.Options[0].Proto != UDP || at.Addr().Is4() != m.own.Addr().Is4() || !m.plausible(at) {
		return from
	}
	return at
}

func (m *Machine) receiveEntry(now time.Time, p *peer, multicast bool, e *Entry) {
	if !m.mayHandle(now, p) {
		return
	}
	if e.IsEventgroup() && multicast { // SUB-1, case 86
		m.stats.MulticastEvents++
		return
	}
	switch e.Type {
	case FindService:
		m.receiveFind(now, p, multicast, e)
	case OfferService:
		m.receiveOffer(now, p, multicast, e)
	case Subscribe:
		m.receiveSubscribe(now, p, e)
	case SubscribeAck:
		m.receiveAck(now, p, e)
	default: // case 46
		m.stats.UnknownEntries++
	}
}
