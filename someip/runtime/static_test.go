package runtime_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// SUB-15: an instance and its subscribers that are configured on both sides need no
// service discovery, over UDP, TCP and multicast.
func TestStaticEndpoints(t *testing.T) {
	d := someiptest.NewDomain(t)
	there := d.Start(1)
	ports := runtime.Range{First: someiptest.FreePort(t)}
	ports.Last = ports.First
	here := d.Start(2, func(c *runtime.NetworkConfig) { c.ClientPorts = ports })
	to := groupAddr(d, 0, someiptest.FreePort(t))
	cfg := service(newServer())
	cfg.UDPPort, cfg.TCPPort, cfg.Unannounced = 30501, 30501, true
	cfg.Events = append(cfg.Events, runtime.EventConfig{ID: 0x8004, Eventgroups: []uint16{0x4477}})
	cfg.Subscribers = []runtime.StaticSubscriber{
		{Eventgroup: group, UDP: d.AddrPort(2, ports.First)},
		{Eventgroup: 0x4477, UDP: to},
	}
	o, err := there.Offer(cfg)
	require.NoError(t, err)
	require.Equal(t, 1, o.Subscribers(event))
	require.NoError(t, o.SetField(tcpField, []byte("value")))

	static := runtime.StaticInstance{
		Key: key, Endpoints: o.Endpoints(), Multicast: map[uint16]netip.AddrPort{0x4477: to},
	}
	remove, err := here.AddStatic(static)
	require.NoError(t, err)
	_, err = here.AddStatic(static)
	require.ErrorIs(t, err, runtime.ErrInUse)
	c := client(t, here)
	require.True(t, c.Availability().Up)
	for _, reliable := range transports {
		require.Equal(t, "x", string(call(t, c, echo, reliable, "x").Payload))
	}
	unicast := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{event}})
	multicast := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: 0x4477, Events: []uint16{0x8004}})
	tcp := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: tcpGroup, Reliable: true})
	for id, s := range map[uint16]*consumer{event: unicast, 0x8004: multicast, tcpField: tcp} {
		s.until(t, runtime.SubscriptionActive)
		require.NoError(t, o.Notify(id, []byte("news")))
		require.Equal(t, "news", receive(t, s.notes).payload)
	}

	// The connection is lost, and opened again.
	o.Stop()
	runtime.AbortLink(here)
	tcp.until(t, runtime.SubscriptionWaiting)
	cfg.UDPPort++ // the other one may be closing
	o, err = there.Offer(cfg)
	require.NoError(t, err)
	require.NoError(t, o.SetField(tcpField, []byte("back")))
	tcp.until(t, runtime.SubscriptionActive)
	eventually(t, func() bool { return o.Subscribers(tcpField) == 1 }, "connected")
	require.NoError(t, o.Notify(tcpField, []byte("again")))
	for receive(t, tcp.notes).payload != "again" {
	}
	require.Zero(t, there.DiscoveryStats().Sent)
	require.Zero(t, here.DiscoveryStats().Sent)

	// From now on discovery has it.
	remove()
	require.False(t, c.Availability().Up)
	o.Stop()
	cfg.Unannounced, cfg.Subscribers = false, nil
	cfg.UDPPort++
	_, err = there.Offer(cfg)
	require.NoError(t, err)
	unicast.until(t, runtime.SubscriptionActive)
	require.True(t, c.Availability().Up)
}

func TestStaticRefused(t *testing.T) {
	n := someiptest.NewDomain(t).Start(1)
	_, err := n.AddStatic(runtime.StaticInstance{Key: key})
	require.ErrorContains(t, err, "endpoint")
	client(t, n)
	_, err = n.AddStatic(runtime.StaticInstance{Key: key, Endpoints: runtime.Endpoints{UDP: netip.MustParseAddrPort("127.0.0.1:1")}})
	require.ErrorIs(t, err, runtime.ErrInUse)
}

// CL-7.
func TestMinorMatch(t *testing.T) {
	for name, c := range map[string]struct {
		match runtime.MinorMatch
		minor uint32
		up    bool
	}{
		"any":         {runtime.MinorAny, 9, true},
		"enough":      {runtime.MinorMinimum, 7, true},
		"more":        {runtime.MinorMinimum, 6, true},
		"too old":     {runtime.MinorMinimum, 8, false},
		"exact":       {runtime.MinorExact, 7, true},
		"not exactly": {runtime.MinorExact, 6, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			n := d.Start(2)
			deploy(t, runtime.Deployment{Instance: key, MinorMatch: c.match, Minor: c.minor}, n)
			offer(t, d.Start(1), newServer()) // minor 7
			cl := client(t, n)
			if c.up {
				available(t, cl, true)
				return
			}
			eventually(t, func() bool { return n.DiscoveryStats().OtherMinor > 1 }, "counted")
			require.False(t, cl.Availability().Up)
		})
	}
}

func TestLoadBalancingAndConfiguration(t *testing.T) {
	d := someiptest.NewDomain(t)
	cfg := service(nil)
	cfg.Configuration, cfg.LoadBalancing = []string{"k=v"}, &runtime.LoadBalancing{Priority: 1, Weight: 100}
	o, err := d.Start(1).Offer(cfg)
	require.NoError(t, err)
	n := d.Start(2)
	changes := observe(t, n, key)
	a := receive(t, changes)
	require.Equal(t, cfg.LoadBalancing, a.LoadBalancing)
	require.Equal(t, cfg.Configuration, a.Configuration)
	eventually(t, func() bool { return n.DiscoveryStats().Received > 5 }, "more offers")
	require.Empty(t, changes, "the same offer is no news")
	o.Stop()
	require.False(t, receive(t, changes).Up)
}

// Session handling inactive (SES-1): events and fire-and-forget have session 0.
func TestNoSessions(t *testing.T) {
	d := someiptest.NewDomain(t)
	off := func(c *runtime.NetworkConfig) { c.NoSessions = true }
	s := newServer()
	o := offer(t, d.Start(1, off), s)
	c := client(t, d.Start(2, off))
	sessions := make(chan uint16, 10)
	_, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: group, OnEvent: func(n runtime.Notification) { sessions <- n.Session },
	})
	require.NoError(t, err)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	for range 2 {
		require.NoError(t, o.Notify(event, nil))
		require.Zero(t, receive(t, sessions))
		require.NoError(t, c.Send(t.Context(), tell, false, nil))
		receive(t, s.told)
		require.Zero(t, s.lastSession())
		call(t, c, echo, false, "")
		require.NotZero(t, s.lastSession(), "SES-2")
	}
}

// The TTL factor keeps what a peer's TTL would have ended.
func TestTTLFactor(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2, func(c *runtime.NetworkConfig) { c.SD.TTLFactor = 30 })
	stack := d.StartStack(1, someiptest.ShortLived)
	offer(t, stack.Network("lan"), newServer())
	patient, strict := client(t, n), client(t, d.Start(3))
	available(t, patient, true)
	available(t, strict, true)
	runtime.Kill(stack)
	available(t, strict, false)
	require.True(t, patient.Availability().Up)
}

// Several networks of one stack share nothing: the same ids, ports and peers may be
// on each.
func TestSeveralNetworks(t *testing.T) {
	one, two := someiptest.NewDomain(t), someiptest.NewDomain(t)
	cfgs := []runtime.NetworkConfig{one.Config(1), two.Config(1)}
	cfgs[0].Name, cfgs[1].Name = "one", "two"
	s, err := runtime.Start(runtime.Config{Networks: cfgs})
	require.NoError(t, err)
	defer s.Close()
	for name, d := range map[string]*someiptest.Domain{"one": one, "two": two} {
		h := newServer()
		offer(t, s.Network(name), h)
		c := client(t, d.Start(2))
		available(t, c, true)
		require.Equal(t, d.Addr(1), c.Availability().Endpoints.UDP.Addr())
		require.Equal(t, name, string(call(t, c, echo, false, name).Payload))
	}
}

// Services share a port, and majors of one service too (SV-8, cases 100 and 104).
func TestSharedPort(t *testing.T) {
	d := someiptest.NewDomain(t)
	n, here := d.Start(1), d.Start(2)
	var clients []*runtime.Client
	for i, k := range []runtime.InstanceKey{{Service: 0x10, Instance: 1, Major: 1}, {Service: 0x10, Instance: 1, Major: 2}, {Service: 0x20, Instance: 1, Major: 1}} {
		cfg := service(newServer())
		cfg.Service, cfg.Instance, cfg.Major = k.Service, k.Instance, k.Major
		cfg.UDPPort, cfg.TCPPort = 31001, 31001
		o, err := n.Offer(cfg)
		require.NoError(t, err)
		require.NoError(t, o.SetField(field, []byte{byte(i)}))
		c, err := here.Client(k)
		require.NoError(t, err)
		defer c.Close()
		clients = append(clients, c)
	}
	for i, c := range clients {
		s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
		require.Equal(t, note{field, string([]byte{byte(i)}), true}, receive(t, s.notes))
		require.Equal(t, "x", string(call(t, c, echo, i%2 == 0, "x").Payload))
	}
}

// An address that is not there is waited for as long as configured.
func TestAddressNotThere(t *testing.T) {
	cfg := someiptest.NewDomain(t).Config(1)
	cfg.Address = netip.MustParsePrefix("192.0.2.77/24")
	for _, wait := range []time.Duration{0, 10 * time.Millisecond} {
		cfg.AddressTimeout = wait
		_, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{cfg}})
		require.ErrorContains(t, err, "192.0.2.77")
	}
}

// Case 22: a request that could not be sent may cost a session id, and nothing else.
func TestCase22SessionGaps(t *testing.T) {
	d := someiptest.NewDomain(t)
	s := newServer()
	offer(t, d.Start(1), s)
	c := client(t, d.Start(2))
	available(t, c, true)
	call(t, c, echo, false, "")
	require.EqualValues(t, 1, s.lastSession())
	_, err := c.Call(t.Context(), echo, false, make([]byte, 1401)) // cannot be sent
	require.ErrorIs(t, err, runtime.ErrTooLarge)
	call(t, c, echo, false, "")
	require.EqualValues(t, 2, s.lastSession())
	runtime.SetSession(c, 40) // as if many had been lost
	call(t, c, echo, false, "")
	require.EqualValues(t, 41, s.lastSession())
}
