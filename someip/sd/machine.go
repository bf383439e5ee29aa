package sd

import (
	"cmp"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Machine is the service discovery state of one network: our offers, the offers
// that peers make, our subscriptions, the subscriptions of peers, the sessions
// of all.
//
// Most methods take the time, which must not go backwards, and return the
// actions that follow, in order; nil if there are none. The owner calls Tick
// when the time that Next returns has come. A Machine is not safe for concurrent
// use: one goroutine, or a lock, owns it.
type Machine struct {
	cfg   Config
	own   netip.AddrPort // our SD endpoint
	rnd   *rand.Rand
	seed  maphash.Seed
	stats Stats
	down  bool // the link is down

	timers    timers
	multicast counter // our multicast sessions
	peers     map[netip.AddrPort]*peer
	floor     counter // where unicast sessions to new peers start

	// What we offer.
	offers      map[someip.InstanceKey]*ownOffer
	offersByID  map[uint16][]*ownOffer // by service
	order       []*ownOffer            // as they were made
	cyclic      timer                  // main phase
	initial     *ramp                  // that waits for its first message
	subscribers int                    // of all our offers
	pending     []*subscriber          // that wait for their TCP connection
	accepted    map[acceptedKey]struct{}
	// What peers offer.
	remote    map[someip.InstanceKey]*remoteOffer
	wants     map[someip.InstanceKey]*want
	silence   silence
	claimedAt time.Time // when it was told last that somebody sends from our address
	// What we subscribed to.
	subscriptions map[SubscriptionKey]*subscription
	bySubscribed  map[someip.InstanceKey][]*subscription
	lapsed        map[SubscriptionKey]lapse
	conns         map[netip.AddrPort]*connection // to TCP endpoints of servers
	groups        map[netip.AddrPort]int         // multicast event groups joined

	// Scratch of one event.
	in      Message
	delay   time.Duration // before Subscribes that the message being received triggers
	delayed bool          // delay was drawn
	parcels []*parcel
	sends   []Send
	acts    []Action
	late    []Action
}

// New returns a Machine whose link is up. It fails with ErrConfig. The random
// numbers are for delays only.
func New(cfg Config, rnd *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg: cfg, own: normal(netip.AddrPortFrom(cfg.Address, cfg.Port)), rnd: rnd, seed: maphash.MakeSeed(),
		peers:         make(map[netip.AddrPort]*peer),
		offers:        make(map[someip.InstanceKey]*ownOffer),
		offersByID:    make(map[uint16][]*ownOffer),
		accepted:      make(map[acceptedKey]struct{}),
		lapsed:        make(map[SubscriptionKey]lapse),
		remote:        make(map[someip.InstanceKey]*remoteOffer),
		wants:         make(map[someip.InstanceKey]*want),
		subscriptions: make(map[SubscriptionKey]*subscription),
		bySubscribed:  make(map[someip.InstanceKey][]*subscription),
		conns:         make(map[netip.AddrPort]*connection),
		groups:        make(map[netip.AddrPort]int),
	}
	m.cyclic.fire = m.sendCyclic
	m.silence.timer.fire = m.heardNothing
	m.silence.cycle = cfg.CyclicOfferDelay
	return m, nil
}

// Tick does what is due. Calling it early or twice does no harm.
func (m *Machine) Tick(now time.Time) []Action {
	m.timers.run(now)
	return m.flush()
}

// Next returns when Tick has to be called next, and false if nothing is due ever.
func (m *Machine) Next() (time.Time, bool) { return m.timers.next() }

// Stats returns the counters.
func (m *Machine) Stats() Stats { return m.stats }

// Available yields what peers offer now, in no particular order.
func (m *Machine) Available() iter.Seq[Available] {
	return func(yield func(Available) bool) {
		for _, o := range m.remote {
			if !yield(o.available()) {
				return
			}
		}
	}
}

// jitter returns a random time from least to most.
func (m *Machine) jitter(least, most time.Duration) time.Duration {
	if least >= most {
		return least
	}
	return least + time.Duration(m.rnd.Int64N(int64(most-least)+1))
}

func compareKeys(a, b someip.InstanceKey) int {
	return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Major, b.Major))
}
