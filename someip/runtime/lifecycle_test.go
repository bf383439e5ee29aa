package runtime_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

var everything = runtime.Filter{Service: 0xFFFF, Instance: 0xFFFF, Major: 0xFF}

func observe(t *testing.T, n *runtime.Network, f runtime.Filter) <-chan runtime.Availability {
	t.Helper()
	ch := make(chan runtime.Availability, 100)
	require.NoError(t, n.Observe(t.Context(), f, func(a runtime.Availability) { ch <- a }))
	return ch
}

func TestObserve(t *testing.T) {
	d := someiptest.NewDomain(t)
	one, two := d.Start(1), d.Start(2)
	own := observe(t, one, everything)
	all := observe(t, two, everything)
	other := observe(t, two, runtime.Filter{Service: 0x4711, Instance: 0xFFFF, Major: 0xFF})
	o := offer(t, one, newServer())
	a := receive(t, all)
	require.True(t, a.Up)
	require.Equal(t, key, a.Key)
	require.EqualValues(t, 7, a.Minor)
	require.Equal(t, o.Endpoints(), a.Endpoints)
	require.Equal(t, d.Addr(1), a.Endpoints.UDP.Addr())

	late := observe(t, two, runtime.Filter{Service: key.Service, Instance: 0xFFFF, Major: 0xFF})
	require.Equal(t, a, receive(t, late), "who comes later hears it at once")

	o.Stop()
	for _, ch := range []<-chan runtime.Availability{all, late} {
		down := receive(t, ch)
		require.False(t, down.Up)
		require.Equal(t, runtime.ReasonStopOffer, down.Reason)
		require.False(t, down.Since.Before(a.Since))
	}
	require.Empty(t, own, "own offers are left out (14.1)")
	require.Empty(t, other)
}

// A host that vanishes without a word is noticed by the time to live; when it
// comes back, subscriptions and clients go on by themselves (case 56).
func TestKillAndRestart(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			eventgroup, id := uint16(group), uint16(field)
			if reliable {
				eventgroup, id = tcpGroup, tcpField
			}
			h := newServer()
			stack := d.StartStack(1, someiptest.ShortLived)
			n := stack.Network("lan")
			o := offer(t, n, h)
			require.NoError(t, o.Notify(id, []byte("before")))

			c := client(t, d.Start(2, someiptest.ShortLived))
			s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: eventgroup, Reliable: reliable, Unreliable: !reliable})
			require.Equal(t, note{id, "before", true}, receive(t, s.notes))
			s.until(t, runtime.SubscriptionActive)
			errs := make(chan error, 1)
			go func() {
				_, err := c.Call(context.Background(), silent, reliable, nil)
				errs <- err
			}()
			receive(t, h.held)

			runtime.Kill(stack)
			var gone *runtime.UnavailableError
			require.ErrorAs(t, receive(t, errs), &gone)
			available(t, c, false)
			require.Equal(t, runtime.ReasonTTL, c.Availability().Reason)
			st := s.until(t, runtime.SubscriptionWaiting)
			require.NotEmpty(t, st.Reason)

			o = offer(t, d.Start(1), newServer())
			require.NoError(t, o.Notify(id, []byte("after")))
			s.until(t, runtime.SubscriptionActive)
			require.Equal(t, note{id, "after", true}, receive(t, s.notes))
			require.Equal(t, "back", string(call(t, c, echo, reliable, "back").Payload))
		})
	}
}

// A restart quicker than the time to live shows by the reboot flag (RB-6).
func TestQuickRestart(t *testing.T) {
	d := someiptest.NewDomain(t)
	h := newServer()
	stack := d.StartStack(1)
	n := stack.Network("lan")
	offer(t, n, h)
	two := d.Start(2)
	c := client(t, two)
	s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: tcpGroup, Reliable: true})
	s.until(t, runtime.SubscriptionActive)
	errs := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), silent, false, nil)
		errs <- err
	}()
	receive(t, h.held)
	changes := observe(t, two, key)
	require.True(t, receive(t, changes).Up)

	// The first message of a host that restarts at once would pass for a copy of
	// its last one (RB-7).
	eventually(t, func() bool { return two.DiscoveryStats().Received > 10 }, "some offers")
	runtime.Kill(stack)
	o := offer(t, d.Start(1), newServer())
	require.NoError(t, o.Notify(tcpField, []byte("new")))
	down := receive(t, changes)
	require.False(t, down.Up)
	require.Equal(t, runtime.ReasonReboot, down.Reason)
	require.True(t, receive(t, changes).Up)
	var gone *runtime.UnavailableError
	require.ErrorAs(t, receive(t, errs), &gone)
	require.Equal(t, runtime.ReasonReboot, gone.Reason)
	require.Equal(t, note{tcpField, "new", true}, receive(t, s.notes))
}

// The server loses its subscribers when a client vanishes.
func TestClientVanishes(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	stack := d.StartStack(2, someiptest.ShortLived)
	n := stack.Network("lan")
	cl, err := n.Client(key)
	require.NoError(t, err)
	subscribe(t, cl, runtime.SubscribeConfig{Eventgroup: group})
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	runtime.Kill(stack)
	eventually(t, func() bool { return o.Subscribers(event) == 0 }, "expired (SUB-12)")
}

// The StopOffer leaves before the sockets close.
func TestCloseIsGraceful(t *testing.T) {
	d := someiptest.NewDomain(t)
	stack := d.StartStack(1)
	n := stack.Network("lan")
	o := offer(t, n, newServer())
	two := d.Start(2)
	changes := observe(t, two, everything)
	require.True(t, receive(t, changes).Up)
	require.NoError(t, stack.Close())
	require.Equal(t, runtime.ReasonStopOffer, receive(t, changes).Reason)

	require.NoError(t, stack.Close())
	_, err := n.Offer(service(nil))
	require.ErrorIs(t, err, runtime.ErrClosed)
	_, err = n.Client(key)
	require.ErrorIs(t, err, runtime.ErrClosed)
	require.ErrorIs(t, n.Observe(t.Context(), everything, nil), runtime.ErrClosed)
	o.Stop()
}

// What was received before the end is answered still.
func TestInFlightIsAnswered(t *testing.T) {
	for name, end := range map[string]func(*runtime.Stack, *runtime.Offering){
		"stop":  func(_ *runtime.Stack, o *runtime.Offering) { o.Stop() },
		"close": func(s *runtime.Stack, _ *runtime.Offering) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			h := newServer()
			stack := d.StartStack(1, func(c *runtime.NetworkConfig) { c.DrainTimeout = patience })
			o := offer(t, stack.Network("lan"), h)
			p := newPeer(t, d.AddrPort(2, 0))
			p.Send(o.Endpoints().UDP, request(silent, 1, "").Append(nil))
			held := receive(t, h.held)
			ended := make(chan struct{})
			go func() {
				end(stack, o)
				close(ended)
			}()
			eventually(t, func() bool { return runtime.Ended(o) }, "no more offered")
			require.NoError(t, held.Respond([]byte("still")))
			require.Equal(t, "still", string(p.next().Payload))
			receive(t, ended)
			// Then the port is given up.
			eventually(t, func() bool {
				c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(o.Endpoints().UDP))
				if err == nil {
					c.Close()
				}
				return err == nil
			}, "port closed")
		})
	}
}

func TestOfferRefuses(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(1)
	first := offer(t, n, newServer())
	_, err := n.Offer(service(nil))
	require.ErrorIs(t, err, runtime.ErrInUse)
	for name, alter := range map[string]func(*runtime.ServiceConfig){
		"no port":            func(c *runtime.ServiceConfig) { c.UDPPort, c.TCPPort, c.Events = 0, 0, nil },
		"event without port": func(c *runtime.ServiceConfig) { c.TCPPort = 0 },
		"SD port (case 74)":  func(c *runtime.ServiceConfig) { c.UDPPort = d.Port },
		"method id":          func(c *runtime.ServiceConfig) { c.Methods = []runtime.MethodConfig{{ID: 0x8001}} },
		"event id":           func(c *runtime.ServiceConfig) { c.Events = []runtime.EventConfig{{ID: 1}} },
		"wildcard":           func(c *runtime.ServiceConfig) { c.Instance = 0xFFFF },
		"same service, same port (UDP-5)": func(c *runtime.ServiceConfig) {
			c.UDPPort = first.Endpoints().UDP.Port()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := service(nil)
			cfg.Instance++
			alter(&cfg)
			_, err := n.Offer(cfg)
			require.Error(t, err)
			t.Log(err)
		})
	}
	// Another service may share the port, and stop without hurting the first (case 17).
	cfg := service(newServer())
	cfg.Service++
	cfg.UDPPort, cfg.TCPPort = first.Endpoints().UDP.Port(), first.Endpoints().TCP.Port()
	shared, err := n.Offer(cfg)
	require.NoError(t, err)
	c := client(t, d.Start(2))
	available(t, c, true)
	require.Equal(t, "a", string(call(t, c, echo, true, "a").Payload))
	shared.Stop()
	require.Equal(t, "b", string(call(t, c, echo, true, "b").Payload))
	require.Equal(t, "c", string(call(t, c, echo, false, "c").Payload))
}

func TestConfigRefuses(t *testing.T) {
	d := someiptest.NewDomain(t)
	for name, alter := range map[string]func(*runtime.NetworkConfig){
		"no name":      func(c *runtime.NetworkConfig) { c.Name = "" },
		"no address":   func(c *runtime.NetworkConfig) { c.Address = netip.Prefix{} },
		"no client id": func(c *runtime.NetworkConfig) { c.ClientIDs = runtime.Range{} },
		"group":        func(c *runtime.NetworkConfig) { c.SD.Group = d.Addr(9) },
		"TTL":          func(c *runtime.NetworkConfig) { c.SD.TTL = 1500_000_000 },
		"ports":        func(c *runtime.NetworkConfig) { c.Ports = runtime.Range{First: d.Port, Last: d.Port} },
		"interface":    func(c *runtime.NetworkConfig) { c.Interface = "none-such" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := d.Config(1)
			alter(&cfg)
			_, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{cfg}})
			require.Error(t, err)
			t.Log(err)
		})
	}
	_, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{d.Config(1), d.Config(1)}})
	require.ErrorContains(t, err, "two networks")
	d.Start(1)
	_, err = runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{d.Config(1)}})
	require.ErrorContains(t, err, "another SOME/IP stack", "two stacks on one address (RB-9)")
}
