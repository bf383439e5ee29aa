package runtime_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

// groupAddr is a multicast group for events of a domain.
func groupAddr(d *someiptest.Domain, i byte, port uint16) netip.AddrPort {
	a := d.Group.As4()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{a[0], 193 + i, a[2], a[3]}), port)
}

func multicastService(to netip.AddrPort, threshold int) runtime.ServiceConfig {
	cfg := service(newServer())
	cfg.Eventgroups = []runtime.EventgroupConfig{{ID: group, Multicast: to, Threshold: threshold}}
	return cfg
}

// Case 94: from the threshold on events go by multicast, initial values never do.
func TestCase94InitialEventsByUnicast(t *testing.T) {
	d := someiptest.NewDomain(t)
	to := groupAddr(d, 0, someiptest.FreePort(t))
	o, err := d.Start(1).Offer(multicastService(to, 2))
	require.NoError(t, err)
	value := "v"
	require.NoError(t, o.SetField(field, []byte(value)))
	all, err := endpoint.ListenMulticast(to, endpoint.UDPConfig{Local: d.AddrPort(9, 0)})
	require.NoError(t, err)
	defer all.Close()
	byMulticast := make(chan string, 10)
	all.Serve(func(from netip.AddrPort, b []byte) {
		m, _, err := someip.ParseMessage(b)
		if err == nil && from == o.Endpoints().UDP {
			byMulticast <- string(m.Payload)
		}
	})
	var peers []peer
	for host := range byte(3) {
		p, events := newPeer(t, d.SD(2+host)), newPeer(t, d.AddrPort(2+host, 0))
		p.subscribe(d, o, events.Addr())
		entry, options := p.ReceiveSD(sd.SubscribeAck)
		require.EqualValues(t, 1, entry.Count1, "the group is in each Ack, also below the threshold (2.2)")
		require.Equal(t, to, options[0].Endpoint)
		m := events.next()
		require.EqualValues(t, field, m.Method)
		require.Equal(t, value, string(m.Payload))
		peers = append(peers, events)
		value = fmt.Sprint(host)
		require.NoError(t, o.Notify(field, []byte(value)))
		if host == 0 {
			require.Equal(t, value, string(events.next().Payload))
		} else {
			require.Equal(t, value, receive(t, byMulticast))
		}
	}
	require.Empty(t, byMulticast)
	for _, p := range peers {
		p.Nothing()
	}
	require.Equal(t, 1, o.Subscribers(field))
}

// Who subscribed to two eventgroups, one of which goes by multicast, gets an event
// of both once.
func TestEventOfTwoGroupsOnce(t *testing.T) {
	d := someiptest.NewDomain(t)
	cfg := multicastService(groupAddr(d, 0, someiptest.FreePort(t)), 1)
	cfg.Events[0].Eventgroups = []uint16{group, 0x4477}
	o, err := d.Start(1).Offer(cfg)
	require.NoError(t, err)
	c := client(t, d.Start(2))
	one := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
	two := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: 0x4477})
	one.until(t, runtime.SubscriptionActive)
	two.until(t, runtime.SubscriptionActive)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "one multicast group")
	require.NoError(t, o.Notify(event, []byte("a")))
	require.NoError(t, o.Notify(event, []byte("b")))
	for _, s := range []*consumer{one, two} {
		require.Equal(t, "a", receive(t, s.notes).payload)
		require.Equal(t, "b", receive(t, s.notes).payload)
	}
}

// Many groups, each on a multicast address of its own; no client misses one or gets
// those of another.
func TestManyMulticastGroups(t *testing.T) {
	for _, count := range []int{2, 50} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			d := someiptest.NewDomain(t)
			cfg := service(newServer())
			cfg.Events = nil
			port := someiptest.FreePort(t)
			for i := range uint16(count) {
				cfg.Events = append(cfg.Events, runtime.EventConfig{ID: 0x8100 + i, Eventgroups: []uint16{1 + i}})
				cfg.Eventgroups = append(cfg.Eventgroups, runtime.EventgroupConfig{
					ID: 1 + i, Multicast: groupAddr(d, byte(i), port), Threshold: 1,
				})
			}
			o, err := d.Start(1).Offer(cfg)
			require.NoError(t, err)
			n := d.Start(2)
			c := client(t, n)
			var subs []*consumer
			for i := range uint16(count) {
				subs = append(subs, subscribe(t, c, runtime.SubscribeConfig{Eventgroup: 1 + i, Events: []uint16{0x8100 + i}}))
			}
			for i, s := range subs {
				s.until(t, runtime.SubscriptionActive)
				eventually(t, func() bool { return o.Subscribers(0x8100+uint16(i)) == 1 }, "subscribed")
			}
			for i, s := range subs {
				id := 0x8100 + uint16(i)
				require.NoError(t, o.Notify(id, fmt.Append(nil, i)))
				require.Equal(t, note{id, fmt.Sprint(i), true}, receive(t, s.notes))
			}
			for _, s := range subs {
				require.Empty(t, s.notes)
				s.Close()
			}
			require.Zero(t, n.Stats().UnexpectedEvents)
			for i := range subs {
				eventually(t, func() bool { return o.Subscribers(0x8100+uint16(i)) == 0 }, "unsubscribed")
			}
		})
	}
}

func TestEventgroupRefused(t *testing.T) {
	n := someiptest.NewDomain(t).Start(1)
	for _, g := range []runtime.EventgroupConfig{
		{ID: 0x7777},
		{ID: tcpGroup},
		{ID: group, Threshold: 1},
		{ID: group, Threshold: 1, Multicast: netip.MustParseAddrPort("10.0.0.1:4000")},
		{ID: group, Threshold: -1},
	} {
		cfg := service(nil)
		cfg.Eventgroups = []runtime.EventgroupConfig{g}
		_, err := n.Offer(cfg)
		require.ErrorContains(t, err, "eventgroup")
	}
}
