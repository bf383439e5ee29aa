package sd

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Machine is the service discovery state of one network: our offers, the offers
// that peers make, our subscriptions, the subscriptions of peers, the sessions
// of all.
//
// All methods take the time as a value that must never go backwards, and return
// the actions that follow, in order; nil if there are none. The owner calls Tick
// when the time that Next returns has come. A Machine is not safe for concurrent
// use: one goroutine, or a lock, owns it.
type Machine struct {
	cfg   Config
	rnd   *rand.Rand
	stats Stats
}

// New returns a Machine whose link is up. It fails with ErrConfig. The random
// numbers are for delays only.
func New(cfg Config, rnd *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, rnd: rnd}, nil
}

// Receive takes a datagram that arrived on the SD port from a peer. Multicast
// says that it was sent to the group. The bytes are not kept.
func (m *Machine) Receive(now time.Time, from netip.AddrPort, multicast bool, datagram []byte) []Action {
	return nil
}

// Tick does what is due. Calling it early or twice does no harm.
func (m *Machine) Tick(now time.Time) []Action { return nil }

// Next returns when Tick has to be called next, and false if nothing is due ever.
func (m *Machine) Next() (time.Time, bool) { return time.Time{}, false }

// Offer announces an instance: initial wait, repetitions, then cyclic offers.
// Call it once the instance can be used (14.4). It fails with ErrOffer, or with
// ErrOffered if the instance is offered already. An offer of the same instance
// by a peer is ignored from now on (case 76).
func (m *Machine) Offer(now time.Time, spec OfferSpec) ([]Action, error) { return nil, nil }

// StopOffer withdraws instances and forgets their subscribers (SV-7). Connections
// are left for the clients to close. Instances not offered are skipped.
func (m *Machine) StopOffer(now time.Time, keys ...someip.InstanceKey) []Action { return nil }

// Find asks the network for an instance while it is wanted and none is offered.
// Instance and major of the key may be wildcards. Offers are reported with or
// without it; Find only makes them come sooner. A second Find of the same key
// changes nothing.
func (m *Machine) Find(now time.Time, key someip.InstanceKey) []Action { return nil }

// StopFind ends a Find.
func (m *Machine) StopFind(key someip.InstanceKey) {}

// Subscribe wants the events of an eventgroup, at once if the instance is
// offered (case 85), and again whenever it comes back. It does not make the
// Machine look for the instance: see Find. A second Subscribe of the same key
// replaces the first. It fails with ErrSub.
func (m *Machine) Subscribe(now time.Time, s Subscription) ([]Action, error) { return nil, nil }

// Unsubscribe ends subscriptions (SUB-13). Those not known are skipped.
func (m *Machine) Unsubscribe(now time.Time, keys ...SubscriptionKey) []Action { return nil }

// Connected tells that a TCP connection of ours to an instance is open, and its
// local end. It answers NeedConnection, but may be told unasked.
func (m *Machine) Connected(now time.Time, server, local netip.AddrPort) []Action { return nil }

// Disconnected tells that a TCP connection of ours closed, or could not be
// opened.
func (m *Machine) Disconnected(now time.Time, server netip.AddrPort) []Action { return nil }

// Accepted tells that a peer opened a TCP connection to an endpoint of ours.
func (m *Machine) Accepted(now time.Time, local, remote netip.AddrPort) []Action { return nil }

// Closed tells that a TCP connection of a peer to an endpoint of ours closed.
func (m *Machine) Closed(now time.Time, local, remote netip.AddrPort) []Action { return nil }

// LinkDown tells that the network interface went down or lost its address. What
// peers offer is unavailable; their subscriptions live on until they expire.
func (m *Machine) LinkDown(now time.Time) []Action { return nil }

// LinkUp tells that the network interface is back. Everything is announced and
// looked for as at the start, with session counters kept (9.6).
func (m *Machine) LinkUp(now time.Time) []Action { return nil }

// Shutdown withdraws all offers and ends all subscriptions.
func (m *Machine) Shutdown(now time.Time) []Action { return nil }

// Stats returns the counters.
func (m *Machine) Stats() Stats { return m.stats }
