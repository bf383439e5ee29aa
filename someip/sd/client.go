package sd

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/someip"
)

// remoteOffer is an instance that a peer offers.
type remoteOffer struct {
	peer     *peer
	info     offerInfo
	timer    timer          // its lifetime
	renewed  time.Time      // last Offer of the peer
	cycle    time.Duration  // its gaps between Offers
	conflict netip.AddrPort // other peer that offers the same elsewhere
}

// offerInfo is what an Offer says. It is comparable.
type offerInfo struct {
	Key           someip.InstanceKey
	Minor         uint32
	Endpoints     Endpoints
	configuration string // items of all configuration options, each with its length byte
	balancing     LoadBalancing
	balanced      bool
}

func (o *remoteOffer) available() Available {
	a := Available{
		Key: o.info.Key, Minor: o.info.Minor, Endpoints: o.info.Endpoints, Peer: o.peer.at,
		Configuration: items(o.info.configuration),
	}
	if o.info.balanced {
		lb := o.info.balancing
		a.LoadBalancing = &lb
	}
	return a
}

// items splits configuration items of which each has its length before it.
func items(s string) (list []string) {
	for s != "" {
		n := 1 + int(s[0])
		list = append(list, s[1:n])
		s = s[n:]
	}
	return list
}

// silent reports whether the peer has not offered for longer than it used to.
func (o *remoteOffer) silent(now time.Time) bool {
	return now.Sub(o.renewed) >= o.cycle*3/2
}

// want is an instance that we look for.
type want struct {
	key  someip.InstanceKey // may hold wildcards
	ramp *ramp              // while Finds go out
}

// Find asks the network for an instance while it is wanted and none is offered.
// Instance and major of the key may be wildcards. Offers are reported with or
// without it; Find only makes them come sooner. A second Find of the same key
// changes nothing.
func (m *Machine) Find(now time.Time, key someip.InstanceKey) []Action {
	if m.wants[key] == nil {
		w := &want{key: key}
		m.wants[key] = w
		if !m.satisfied(key) {
			m.startFind(now, w)
		}
	}
	return m.flush()
}

// StopFind ends a Find.
func (m *Machine) StopFind(key someip.InstanceKey) {
	if w := m.wants[key]; w != nil {
		w.ramp = nil
		delete(m.wants, key)
	}
}

// satisfied reports whether nothing needs to be looked for: a peer offers it, or
// we do (case 68).
func (m *Machine) satisfied(key someip.InstanceKey) bool {
	if key.Instance != someip.AnyInstance && key.Major != someip.AnyMajor {
		return m.remote[key] != nil || m.offers[key] != nil
	}
	for k := range m.remote {
		if k.Matches(key) {
			return true
		}
	}
	for _, o := range m.offersByID[key.Service] {
		if o.spec.Key.Matches(key) {
			return true
		}
	}
	return false
}

// receiveOffer takes an Offer or StopOffer.
func (m *Machine) receiveOffer(now time.Time, p *peer, multicast bool, e *Entry) {
	key := e.Key()
	if !key.Valid() {
		m.stats.BadEntries++
		return
	}
	old := m.remote[key]
	if e.TTL == 0 { // its options need not be there (7.4)
		if old == nil || old.peer != p {
			m.stats.UnknownStops++
			return
		}
		m.dropOffer(now, old, ReasonStopped)
		return
	}
	info, ok := m.readOffer(now, p, e)
	if !ok {
		return
	}
	if own := m.offers[key]; own != nil { // case 76
		m.conflict(&own.conflict, p, OfferConflict{
			Key: key, Peer: p.at, Local: true, Configuration: items(info.configuration),
		})
		return
	}
	if accept := m.cfg.AcceptMinor; accept != nil && !accept(key, e.Minor) {
		m.stats.OtherMinor++
		if old != nil && old.peer == p {
			m.dropOffer(now, old, ReasonOtherVersion)
		}
		return
	}
	switch {
	case old == nil && !m.mayReturn(now, p, key):
		return
	case old == nil:
		old = m.addOffer(now, p, info)
	case old.info.Endpoints == info.Endpoints:
		if old.info != info {
			old.info = info
			m.emit(old.available())
		}
		if old.peer != p && !old.silent(now) {
			// The same thing, announced from two addresses: one sets the pace.
			m.setTTL(&old.timer, now, e.TTL, m.cfg.offerFactor(key))
			return
		}
		old.peer.release(old)
		old.peer = p
		p.offers[key] = old
	case old.peer != p && !old.silent(now):
		// Somebody else offers it elsewhere and was heard a moment ago. Following
		// both would change the route with each of their offers; once one falls
		// silent the other is followed.
		m.conflict(&old.conflict, p, OfferConflict{Key: key, Peer: p.at})
		return
	case !m.mayReturn(now, p, key):
		return
	default: // CL-2: stop and new offer
		m.dropOffer(now, old, ReasonMoved)
		old = m.addOffer(now, p, info)
	}
	if old == nil {
		return
	}
	old.cycle = max(m.cfg.CyclicOfferDelay, now.Sub(old.renewed))
	old.renewed = now
	m.setTTL(&old.timer, now, e.TTL, m.cfg.offerFactor(key))
	for _, s := range m.bySubscribed[key] {
		m.offered(now, s, old, multicast)
	}
}

func (m *Machine) conflict(known *netip.AddrPort, p *peer, c OfferConflict) {
	m.stats.Conflicts++
	if *known != p.at {
		*known = p.at
		m.emit(c)
	}
}

// readOffer reads what an Offer says, and counts why it cannot be used.
func (m *Machine) readOffer(now time.Time, p *peer, e *Entry) (offerInfo, bool) {
	info := offerInfo{Key: e.Key(), Minor: e.Minor}
	var ok bool
	if info.Endpoints, ok = m.entryEndpoints(now, p, e); !ok {
		return info, false
	}
	if !info.Endpoints.UDP.IsValid() && !info.Endpoints.TCP.IsValid() {
		m.stats.BadEntries++
		return info, false
	}
	first, second, _ := m.in.Runs(e)
	for _, run := range [2][]Option{first, second} {
		for i := range run {
			switch o := &run[i]; o.Type {
			case OptionConfiguration: // several are merged (7.3)
				var items strings.Builder
				items.WriteString(info.configuration)
				for item := range o.Configuration() {
					items.WriteByte(byte(len(item)))
					items.WriteString(item)
				}
				info.configuration = items.String()
			case OptionLoadBalancing:
				info.balancing, info.balanced = LoadBalancing{o.Priority, o.Weight}, true
			default:
			}
		}
	}
	return info, true
}

// addOffer makes an instance available, if there is room, else it returns nil.
func (m *Machine) addOffer(now time.Time, p *peer, info offerInfo) *remoteOffer {
	if len(m.remote) >= m.cfg.Limits.Offers || len(p.offers) >= m.cfg.Limits.OffersPerPeer {
		m.stats.OfferLimit++
		return nil
	}
	o := &remoteOffer{peer: p, info: info, renewed: now}
	o.timer.fire = func(now time.Time) { m.dropOffer(now, o, ReasonExpired) } // CL-3
	m.remote[info.Key] = o
	p.offers[info.Key] = o
	for _, w := range m.wants {
		if info.Key.Matches(w.key) {
			w.ramp = nil // Finds stop (CL-1)
		}
	}
	m.emit(o.available())
	return o
}

// dropOffer makes an instance unavailable, and with it what depends on it. It is
// looked for again unless the peer itself said that it stops (CL-1, case 61).
func (m *Machine) dropOffer(now time.Time, o *remoteOffer, why Reason) {
	m.drop(now, o, why, why == ReasonExpired || why == ReasonLinkDown || why == ReasonMoved)
}

// drop is dropOffer that says whether the server may know our subscriptions still.
func (m *Machine) drop(now time.Time, o *remoteOffer, why Reason, resync bool) {
	key := o.info.Key
	m.timers.stop(&o.timer)
	delete(m.remote, key)
	o.peer.release(o)
	for _, s := range m.bySubscribed[key] {
		m.endSubscription(s, why, resync)
	}
	m.forgetConnection(o.info.Endpoints.TCP)
	if why == ReasonStopped || why == ReasonMoved || why == ReasonRebooted || why == ReasonOtherVersion {
		m.ended(now, o.peer, key)
	}
	m.emit(Unavailable{Key: key, Peer: o.peer.at, Reason: why})
	if why == ReasonStopped || why == ReasonWithdrawn {
		return
	}
	m.findAgain(now, key)
}

// findAgain looks for an instance that is gone, where it is wanted.
func (m *Machine) findAgain(now time.Time, key someip.InstanceKey) {
	for _, w := range m.wants {
		if key.Matches(w.key) && !m.satisfied(w.key) {
			m.startFind(now, w)
		}
	}
}

// sortedWants makes the order of Finds the same in each run.
func sortedWants(wants map[someip.InstanceKey]*want) []*want {
	return slices.SortedFunc(maps.Values(wants), func(a, b *want) int { return compareKeys(a.key, b.key) })
}
