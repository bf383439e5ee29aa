package sd_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

var (
	own    = ap("10.0.0.1:30490")
	server = ap("10.0.0.2:30490")
	client = ap("10.0.0.3:30490")

	climate = someip.InstanceKey{Service: 0x1234, Instance: 1, Major: 1}
	door    = someip.InstanceKey{Service: 0x2000, Instance: 7, Major: 2}
)

// bench is a machine with a clock of its own, and a trace of what it did.
type bench struct {
	t     *testing.T
	m     *sd.Machine
	start time.Time
	now   time.Time
	trace []string
	acts  []sd.Action
}

// testConfig has no randomness: 50 ms initial delay, repetitions after 100 and
// 200 ms, one second of cycle, 20 ms before answers to multicast Finds.
func testConfig() sd.Config {
	c := sd.DefaultConfig()
	c.Address = own.Addr()
	c.Subnet = netip.MustParsePrefix("10.0.0.0/24")
	c.InitialDelayMin, c.InitialDelayMax = 50*time.Millisecond, 50*time.Millisecond
	c.RepetitionsMax = 2
	c.RequestResponseDelayMin, c.RequestResponseDelayMax = 20*time.Millisecond, 20*time.Millisecond
	return c
}

func newBench(t *testing.T, change ...func(*sd.Config)) *bench {
	t.Helper()
	c := testConfig()
	for _, f := range change {
		f(&c)
	}
	m, err := sd.New(c, rand.New(rand.NewPCG(1, 2)))
	require.NoError(t, err)
	start := time.Unix(1000, 0)
	return &bench{t: t, m: m, start: start, now: start}
}

// run lets time pass, and does what is due when it is.
func (b *bench) run(d time.Duration) *bench {
	end := b.now.Add(d)
	for {
		next, ok := b.m.Next()
		if !ok || next.After(end) {
			break
		}
		if next.After(b.now) {
			b.now = next
		}
		b.did(b.m.Tick(b.now))
		require.Empty(b.t, b.m.Tick(b.now), "a second Tick does nothing")
	}
	b.now = end
	return b
}

// did notes actions.
func (b *bench) did(acts []sd.Action) *bench {
	b.acts = append(b.acts, acts...)
	for _, a := range acts {
		b.trace = append(b.trace, fmt.Sprintf("%v %s", b.now.Sub(b.start), describe(b.t, a)))
	}
	return b
}

func (b *bench) must(acts []sd.Action, err error) *bench {
	b.t.Helper()
	require.NoError(b.t, err)
	return b.did(acts)
}

// expect compares the trace since the last call, without times where the wanted
// lines have none.
func (b *bench) expect(want ...string) *bench {
	b.t.Helper()
	got := b.trace
	b.trace, b.acts = nil, nil
	if len(want) == 0 {
		require.Empty(b.t, got)
		return b
	}
	for i, line := range got {
		if i < len(want) && (want[i] == "" || want[i][0] < '0' || want[i][0] > '9') {
			_, got[i], _ = strings.Cut(line, " ")
		}
	}
	require.Equal(b.t, want, got)
	return b
}

// sends returns the messages sent since the last expect.
func (b *bench) sends() []sd.Message {
	var all []sd.Message
	for _, a := range b.acts {
		if s, ok := a.(sd.Send); ok {
			m, _, err := sd.Parse(s.Data)
			require.NoError(b.t, err)
			all = append(all, m)
		}
	}
	b.trace, b.acts = nil, nil
	return all
}

// host is a peer of the bench that says what it is told to.
type host struct {
	b         *bench
	at        netip.AddrPort
	multicast uint16 // sessions
	unicast   uint16
	flags     sd.Flags
}

func (b *bench) host(at netip.AddrPort) *host {
	return &host{b: b, at: at, flags: sd.FlagReboot | sd.FlagUnicast}
}

// restart resets the session counters.
func (h *host) restart() { h.multicast, h.unicast = 0, 0 }

func (h *host) toAll(entries ...entry) *bench {
	h.multicast++
	return h.b.did(h.b.m.Receive(h.b.now, h.at, true, h.encode(h.multicast, entries)))
}

func (h *host) toUs(entries ...entry) *bench {
	h.unicast++
	return h.b.did(h.b.m.Receive(h.b.now, h.at, false, h.encode(h.unicast, entries)))
}

// entry is an entry with its options.
type entry struct {
	sd.Entry
	options []sd.Option
}

func (h *host) encode(session uint16, entries []entry) []byte {
	return encode(h.b.t, session, h.flags, entries...)
}

func encode(t *testing.T, session uint16, flags sd.Flags, entries ...entry) []byte {
	t.Helper()
	m := sd.Message{Session: session, Flags: flags}
	for _, e := range entries {
		e.Index1, e.Count1 = uint8(len(m.Options)), uint8(len(e.options))
		m.Entries = append(m.Entries, e.Entry)
		m.Options = append(m.Options, e.options...)
	}
	data, err := m.Append(nil)
	require.NoError(t, err)
	return data
}

func udp(at string) sd.Option { return sd.EndpointOption(ap(at), sd.UDP) }
func tcp(at string) sd.Option { return sd.EndpointOption(ap(at), sd.TCP) }

func find(k someip.InstanceKey) entry {
	return entry{Entry: sd.Entry{
		Type: sd.FindService, Service: k.Service, Instance: k.Instance, Major: k.Major, TTL: 3, Minor: someip.AnyMinor,
	}}
}

func offer(k someip.InstanceKey, ttl uint32, options ...sd.Option) entry {
	return entry{sd.Entry{Type: sd.OfferService, Service: k.Service, Instance: k.Instance, Major: k.Major, TTL: ttl}, options}
}

func sub(k someip.InstanceKey, eventgroup uint16, ttl uint32, options ...sd.Option) entry {
	return entry{sd.Entry{
		Type: sd.Subscribe, Service: k.Service, Instance: k.Instance, Major: k.Major, TTL: ttl, Eventgroup: eventgroup,
	}, options}
}

func ack(k someip.InstanceKey, eventgroup uint16, ttl uint32, options ...sd.Option) entry {
	e := sub(k, eventgroup, ttl, options...)
	e.Type = sd.SubscribeAck
	return e
}

// changed returns a copy of an entry with a change.
func changed(e entry, change func(*entry)) entry {
	change(&e)
	return e
}

// describe makes an action readable.
func describe(t *testing.T, a sd.Action) string {
	t.Helper()
	switch a := a.(type) {
	case sd.Send:
		to := a.To.Addr().String()
		if a.Multicast {
			require.Equal(t, "224.244.224.245:30490", a.To.String())
			to = "all"
		}
		m, rest, err := sd.Parse(a.Data)
		require.NoError(t, err)
		require.NoError(t, m.OptionErr)
		require.Empty(t, rest)
		require.NotZero(t, m.Session)
		require.NotZero(t, m.Flags&sd.FlagUnicast)
		parts := make([]string, 0, len(m.Entries))
		for i := range m.Entries {
			parts = append(parts, describeEntry(t, &m, &m.Entries[i]))
		}
		return "to " + to + ": " + strings.Join(parts, "; ")
	case sd.Available:
		return fmt.Sprintf("available %v%s", a.Key, endpoints(a.Endpoints))
	case sd.Unavailable:
		return fmt.Sprintf("unavailable %v: %v", a.Key, a.Reason)
	case sd.OfferConflict:
		return fmt.Sprintf("conflict %v local=%v with %v", a.Key, a.Local, a.Peer.Addr())
	case sd.OwnAddressClaimed:
		return fmt.Sprintf("own address %v claimed by %v for %v", a.Claimed, a.Peer, a.Key)
	case sd.NeedConnection:
		return fmt.Sprintf("connect %v refused=%v", a.Server, a.Refused)
	case sd.SubscriptionAcked:
		if a.Multicast.IsValid() {
			return fmt.Sprintf("acked %v by %v", a.Key, a.Multicast)
		}
		return fmt.Sprintf("acked %v", a.Key)
	case sd.SubscriptionNacked:
		return fmt.Sprintf("nacked %v", a.Key)
	case sd.SubscriptionMismatch:
		return fmt.Sprintf("mismatch %v:%s", a.Key, endpoints(a.Offered))
	case sd.SubscriptionLost:
		return fmt.Sprintf("lost %v: %v", a.Key, a.Reason)
	case sd.SubscriberAdded:
		return fmt.Sprintf("subscriber %s initial=%v", subscriber(a.Subscriber), a.Initial)
	case sd.SubscribeAsked:
		return "asked " + subscriber(a.Subscriber)
	case sd.SubscriberRemoved:
		return fmt.Sprintf("subscriber %s removed: %v", subscriber(a.Subscriber), a.Reason)
	case sd.PeerRebooted:
		return fmt.Sprintf("rebooted %v", a.Peer.Addr())
	case sd.JoinMulticast:
		return fmt.Sprintf("join %v", a.Group)
	case sd.LeaveMulticast:
		return fmt.Sprintf("leave %v", a.Group)
	case sd.RejoinDiscovery:
		return "rejoin"
	default:
		t.Fatalf("unknown action %T", a)
		return ""
	}
}

func describeEntry(t *testing.T, m *sd.Message, e *sd.Entry) string {
	t.Helper()
	names := map[sd.EntryType][2]string{
		sd.FindService: {"Find", "StopFind"}, sd.OfferService: {"Offer", "StopOffer"},
		sd.Subscribe: {"Subscribe", "StopSubscribe"}, sd.SubscribeAck: {"Ack", "Nack"},
	}
	var s strings.Builder
	name := names[e.Type][0]
	if e.TTL == 0 {
		name = names[e.Type][1]
	}
	fmt.Fprintf(&s, "%s %v", name, e.Key())
	if e.IsEventgroup() {
		fmt.Fprintf(&s, " %04x", e.Eventgroup)
		if e.InitialData {
			s.WriteString(" initial")
		}
	}
	first, second, ok := m.Runs(e)
	require.True(t, ok)
	for _, run := range [][]sd.Option{first, second} {
		for i := range run {
			switch o := &run[i]; {
			case o.IsEndpoint():
				fmt.Fprintf(&s, " %v:%v", o.Proto, o.Endpoint)
			case o.IsMulticast():
				fmt.Fprintf(&s, " group:%v", o.Endpoint)
			default:
				fmt.Fprintf(&s, " option %02x", uint8(o.Type))
			}
		}
	}
	return s.String()
}

func endpoints(e sd.Endpoints) string {
	var s string
	if e.UDP.IsValid() {
		s += " udp:" + e.UDP.String()
	}
	if e.TCP.IsValid() {
		s += " tcp:" + e.TCP.String()
	}
	return s
}

func subscriber(s sd.Subscriber) string {
	return fmt.Sprintf("%v %v %04x.%d%s", s.Peer.Addr(), s.Instance, s.Eventgroup, s.Counter, endpoints(s.Endpoints))
}

// climateOffer is what the bench offers in most tests.
func climateOffer() sd.OfferSpec {
	return sd.OfferSpec{
		Key: climate, Minor: 3, Endpoints: sd.Endpoints{UDP: ap("10.0.0.1:3000"), TCP: ap("10.0.0.1:3001")},
		Eventgroups: []sd.Eventgroup{
			{ID: 1, UDP: true},
			{ID: 2, TCP: true},
			{ID: 3, UDP: true, Multicast: ap("224.225.226.233:32344")},
			{ID: 4, UDP: true, TCP: true},
		},
	}
}

// offering is a bench that has offered climate and is in its main phase.
func offering(t *testing.T, change ...func(*sd.Config)) *bench {
	t.Helper()
	b := newBench(t, change...)
	b.must(b.m.Offer(b.now, climateOffer()))
	b.run(400 * time.Millisecond)
	require.Len(t, b.trace, 3)
	b.trace, b.acts = nil, nil
	return b
}
