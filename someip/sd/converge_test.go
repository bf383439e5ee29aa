package sd_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// world joins machines by a link that loses, delays, reorders and duplicates,
// and by TCP connections, in virtual time.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	now      time.Time
	nodes    []*node
	events   []event // in the order they were made
	loss     float64 // of datagrams
	twice    float64 // that arrive twice
	delay    time.Duration
	fifo     bool // datagrams are not reordered
	nextPort uint16
}

type event struct {
	at time.Time
	do func()
}

// node is one host: a machine, what its applications want, and what the machine
// told so far.
type node struct {
	w      *world
	at     netip.AddrPort
	m      *sd.Machine
	offers map[someip.InstanceKey]sd.OfferSpec
	wants  map[sd.SubscriptionKey]sd.Subscription

	available   map[someip.InstanceKey]sd.Endpoints
	subscribed  map[sd.SubscriptionKey]bool
	subscribers map[string]sd.Subscriber
	initials    map[string]int                    // initial events sent, by subscriber
	conns       map[netip.AddrPort]netip.AddrPort // server to local
}

func newWorld(t *testing.T, seed uint64, nodes int) *world {
	t.Helper()
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1000, 0), nextPort: 50000}
	for i := range nodes {
		n := &node{
			w: w, at: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 30490),
			offers: map[someip.InstanceKey]sd.OfferSpec{}, wants: map[sd.SubscriptionKey]sd.Subscription{},
		}
		n.start()
		w.nodes = append(w.nodes, n)
	}
	return w
}

// start makes a fresh machine, as after a crash: peers are told nothing.
func (n *node) start() {
	c := sd.DefaultConfig()
	c.Address, c.Subnet = n.at.Addr(), netip.MustParsePrefix("10.0.0.0/24")
	m, err := sd.New(c, n.w.rnd)
	require.NoError(n.w.t, err)
	n.m = m
	n.available = map[someip.InstanceKey]sd.Endpoints{}
	n.subscribed = map[sd.SubscriptionKey]bool{}
	n.subscribers = map[string]sd.Subscriber{}
	n.initials = map[string]int{}
	n.conns = map[netip.AddrPort]netip.AddrPort{}
	for _, k := range sorted(n.offers) {
		n.must(m.Offer(n.w.now, n.offers[k]))
	}
	for _, k := range sorted(n.wants) {
		n.do(m.Find(n.w.now, k.Instance))
		n.must(m.Subscribe(n.w.now, n.wants[k]))
	}
}

// sorted makes a run depend on nothing but its seed.
func sorted[K comparable, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// crash restarts the machine. The other ends of its connections notice later.
func (n *node) crash() {
	for _, other := range n.w.nodes {
		if other == n {
			continue
		}
		for _, serverAt := range sorted(other.conns) {
			local := other.conns[serverAt]
			if serverAt.Addr() == n.at.Addr() {
				n.w.after(n.w.upTo(500*time.Millisecond), func() {
					if other.conns[serverAt] == local {
						delete(other.conns, serverAt)
						other.do(other.m.Disconnected(n.w.now, serverAt))
					}
				})
			}
		}
	}
	for _, serverAt := range sorted(n.conns) {
		n.w.closeAtServer(serverAt, n.conns[serverAt])
	}
	n.start()
}

func (w *world) host(a netip.Addr) *node {
	for _, n := range w.nodes {
		if n.at.Addr() == a {
			return n
		}
	}
	w.t.Fatalf("no host %v", a)
	return nil
}

func (w *world) closeAtServer(serverAt, local netip.AddrPort) {
	s := w.host(serverAt.Addr())
	w.after(w.upTo(100*time.Millisecond), func() { s.do(s.m.Closed(w.now, serverAt, local)) })
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

func (w *world) after(d time.Duration, do func()) {
	w.events = append(w.events, event{w.now.Add(d), do})
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); ; {
		next, do := end.Add(1), func() {}
		for i := range w.events {
			if w.events[i].at.Before(next) {
				next = w.events[i].at
				do = func() {
					e := w.events[i]
					w.events = slices.Delete(w.events, i, i+1)
					e.do()
				}
			}
		}
		for _, n := range w.nodes {
			if at, ok := n.m.Next(); ok && at.Before(next) {
				next = at
				do = func() { n.do(n.m.Tick(w.now)) }
			}
		}
		if next.After(end) {
			w.now = end
			return
		}
		if next.After(w.now) {
			w.now = next
		}
		do()
	}
}

func (n *node) must(acts []sd.Action, err error) {
	require.NoError(n.w.t, err)
	n.do(acts)
}

// do carries out actions as a runtime would.
func (n *node) do(acts []sd.Action) {
	for _, a := range acts {
		switch a := a.(type) {
		case sd.Send:
			for _, other := range n.w.nodes {
				if other != n && (a.Multicast || other.at == a.To) {
					n.w.transmit(n.at, other, a)
				}
			}
		case sd.Available:
			n.available[a.Key] = a.Endpoints
		case sd.Unavailable:
			delete(n.available, a.Key)
			for _, serverAt := range sorted(n.conns) { // CL-8
				local := n.conns[serverAt]
				used := false
				for _, e := range n.available {
					used = used || e.TCP == serverAt
				}
				if !used {
					delete(n.conns, serverAt)
					n.w.closeAtServer(serverAt, local)
				}
			}
		case sd.NeedConnection:
			n.w.after(n.w.upTo(20*time.Millisecond), func() { n.dial(a.Server) })
		case sd.SubscriptionAcked:
			n.subscribed[a.Key] = true
		case sd.SubscriptionLost:
			require.True(n.w.t, n.subscribed[a.Key], "lost what was not acknowledged")
			delete(n.subscribed, a.Key)
		case sd.SubscriptionNacked:
			delete(n.subscribed, a.Key)
		case sd.SubscriberAdded:
			n.subscribers[id(a.Subscriber)] = a.Subscriber
			if a.Initial {
				n.initials[id(a.Subscriber)]++
			}
		case sd.SubscriberRemoved:
			require.Contains(n.w.t, n.subscribers, id(a.Subscriber), "removed what was not added")
			delete(n.subscribers, id(a.Subscriber))
		}
	}
}

func id(s sd.Subscriber) string { return fmt.Sprint(s.Peer.Addr(), s.Instance, s.Eventgroup) }

func (n *node) dial(serverAt netip.AddrPort) {
	s := n.w.host(serverAt.Addr())
	local, open := n.conns[serverAt]
	if !open {
		offered := false
		for _, o := range s.offers {
			offered = offered || o.Endpoints.TCP == serverAt
		}
		if !offered || n.w.rnd.Float64() < n.w.loss {
			n.do(n.m.Disconnected(n.w.now, serverAt))
			return
		}
		n.w.nextPort++
		local = netip.AddrPortFrom(n.at.Addr(), n.w.nextPort)
		n.conns[serverAt] = local
		n.w.after(n.w.upTo(5*time.Millisecond), func() { s.do(s.m.Accepted(n.w.now, serverAt, local)) })
	}
	n.do(n.m.Connected(n.w.now, serverAt, local))
}

func (w *world) transmit(from netip.AddrPort, to *node, s sd.Send) {
	copies := 1
	if w.rnd.Float64() < w.twice {
		copies = 2
	}
	for range copies {
		if w.rnd.Float64() < w.loss {
			continue
		}
		delay := w.delay
		if !w.fifo {
			delay = w.upTo(delay)
		}
		w.after(delay, func() { to.do(to.m.Receive(w.now, from, s.Multicast, s.Data)) })
	}
}

// key and spec of the i-th instance that a node may offer: of two, one is
// reached by UDP and one by both protocols.
func (n *node) key(i int) someip.InstanceKey {
	return someip.InstanceKey{Service: 0x1000 + uint16(n.at.Addr().As4()[3]), Instance: uint16(1 + i), Major: 1}
}

func (n *node) spec(i int) sd.OfferSpec {
	spec := sd.OfferSpec{
		Key: n.key(i), Endpoints: sd.Endpoints{UDP: netip.AddrPortFrom(n.at.Addr(), 3000)},
		Eventgroups: []sd.Eventgroup{{ID: 1, UDP: true}},
	}
	if i%2 == 1 {
		spec.Endpoints.TCP = netip.AddrPortFrom(n.at.Addr(), 3001)
		spec.Eventgroups = append(spec.Eventgroups, sd.Eventgroup{ID: 2, TCP: true})
	}
	return spec
}

// mutate does something that applications or hosts do.
func (n *node) mutate() {
	w := n.w
	i := w.rnd.IntN(4)
	switch w.rnd.IntN(10) {
	case 0, 1, 2: // offer or stop
		if _, ok := n.offers[n.key(i)]; ok {
			delete(n.offers, n.key(i))
			n.do(n.m.StopOffer(w.now, n.key(i)))
			return
		}
		n.offers[n.key(i)] = n.spec(i)
		n.must(n.m.Offer(w.now, n.spec(i)))
	case 3, 4, 5, 6: // subscribe or stop
		peer := w.nodes[w.rnd.IntN(len(w.nodes))]
		if peer == n {
			return
		}
		s := sd.Subscription{Key: sd.SubscriptionKey{Instance: peer.key(i), Eventgroup: 1}, UDP: netip.AddrPortFrom(n.at.Addr(), 4000)}
		if i%2 == 1 && w.rnd.IntN(2) == 0 {
			s = sd.Subscription{Key: sd.SubscriptionKey{Instance: peer.key(i), Eventgroup: 2}, TCP: true}
		}
		if _, ok := n.wants[s.Key]; ok {
			delete(n.wants, s.Key)
			delete(n.subscribed, s.Key)
			n.do(n.m.Unsubscribe(w.now, s.Key))
			return
		}
		n.wants[s.Key] = s
		n.do(n.m.Find(w.now, s.Key.Instance))
		n.must(n.m.Subscribe(w.now, s))
	case 7:
		n.crash()
	case 8: // the link goes and comes back
		n.do(n.m.LinkDown(w.now))
		w.after(w.upTo(4*time.Second), func() { n.do(n.m.LinkUp(w.now)) })
	case 9: // a connection breaks
		for _, serverAt := range sorted(n.conns) {
			local := n.conns[serverAt]
			delete(n.conns, serverAt)
			n.do(n.m.Disconnected(w.now, serverAt))
			w.closeAtServer(serverAt, local)
			return
		}
	}
}

// check verifies that everybody knows what is, and nothing else.
func (w *world) check() {
	offered := map[someip.InstanceKey]*node{}
	for _, n := range w.nodes {
		for k := range n.offers {
			offered[k] = n
		}
	}
	wantSubscribers := map[*node]map[string]bool{}
	for _, n := range w.nodes {
		wantSubscribers[n] = map[string]bool{}
	}
	for _, n := range w.nodes {
		want := map[someip.InstanceKey]sd.Endpoints{}
		for k, peer := range offered {
			if peer != n {
				want[k] = peer.offers[k].Endpoints
			}
		}
		require.Equal(w.t, want, n.available, "offers seen by %v", n.at)
		for k, s := range n.wants {
			peer := offered[k.Instance]
			require.Equal(w.t, peer != nil, n.subscribed[k], "subscription of %v to %v", n.at, k)
			if peer == nil {
				continue
			}
			who := fmt.Sprint(n.at.Addr(), k.Instance, k.Eventgroup)
			wantSubscribers[peer][who] = true
			require.Contains(w.t, peer.subscribers, who, "subscribers of %v", peer.at)
			require.Positive(w.t, peer.initials[who], "no initial events for %s", who)
			got := peer.subscribers[who].Endpoints
			if s.TCP {
				require.Equal(w.t, sd.Endpoints{TCP: n.conns[peer.offers[k.Instance].Endpoints.TCP]}, got)
			} else {
				require.Equal(w.t, sd.Endpoints{UDP: s.UDP}, got)
			}
		}
	}
	for _, n := range w.nodes {
		for who := range n.subscribers {
			require.True(w.t, wantSubscribers[n][who], "%v has a subscriber that is none: %s", n.at, who)
		}
	}
}

// Whatever is lost, repeated or restarted, within a few cycles of a healthy link
// everything offered is available everywhere and everything wanted is subscribed.
func TestConvergence(t *testing.T) {
	worlds := 200
	if testing.Short() {
		worlds = 30
	}
	for seed := range worlds {
		t.Logf("seed %d", seed)
		w := newWorld(t, uint64(seed), 2+seed%3)
		w.delay, w.loss, w.twice = 40*time.Millisecond, 0.3, 0.1
		for range 60 {
			w.nodes[w.rnd.IntN(len(w.nodes))].mutate()
			w.run(w.upTo(time.Second))
		}
		w.delay, w.loss, w.twice, w.fifo = 2*time.Millisecond, 0, 0, true
		w.run(15 * time.Second)
		w.check()
	}
}

// On a link that neither loses nor reorders, and without restarts, no peer is ever thought to have restarted,
// and initial events come once per subscription.
func TestQuietNetwork(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(t, seed, 3)
		w.delay, w.fifo = 2*time.Millisecond, true
		for _, n := range w.nodes {
			for i := range 4 {
				n.offers[n.key(i)] = n.spec(i)
				n.must(n.m.Offer(w.now, n.spec(i)))
			}
		}
		w.run(w.upTo(3 * time.Second))
		for _, n := range w.nodes {
			for _, peer := range w.nodes {
				for i := range 4 {
					if peer == n {
						continue
					}
					s := sd.Subscription{
						Key: sd.SubscriptionKey{Instance: peer.key(i), Eventgroup: uint16(1 + i%2)},
						UDP: netip.AddrPortFrom(n.at.Addr(), 4000), TCP: i%2 == 1,
					}
					n.wants[s.Key] = s
					n.must(n.m.Subscribe(w.now, s))
				}
			}
			w.run(w.upTo(time.Second))
		}
		w.run(time.Minute)
		for _, n := range w.nodes {
			w.check()
			st := n.m.Stats()
			require.Zero(t, st.Reboots)
			require.Zero(t, st.NacksSent)
			require.Zero(t, st.Conflicts)
			for who, count := range n.initials {
				require.Equal(t, 1, count, who)
			}
		}
	}
}
