package someiptest_test

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
	"carisma.dev/gateway/someip/tp"
)

var key = runtime.InstanceKey{Service: 0x1234, Instance: 1, Major: 1}

// echo offers an instance with a method and a field.
func echo(t *testing.T, n *runtime.Network) *runtime.Offering {
	t.Helper()
	o, err := n.Offer(runtime.ServiceConfig{
		Service: key.Service, Instance: key.Instance, Major: key.Major, UDPPort: runtime.AutoPort,
		Events:      []runtime.EventConfig{{ID: 0x8001, Eventgroups: []uint16{1}, Field: true}},
		Eventgroups: []runtime.EventgroupConfig{{ID: 1, Multicast: netip.MustParseAddrPort("239.1.2.3:4000"), Threshold: 2}},
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
			if r.Method == 1 {
				_ = r.Respond(r.Payload)
			}
		}),
	})
	require.NoError(t, err)
	return o
}

// The phases of discovery, a lifetime and a time-out take the time that they should,
// to the millisecond.
func TestEtherByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ether := someiptest.NewEther(t)
		begin := time.Now()
		here := ether.Start(2)
		changes := make(chan runtime.Availability, 10)
		require.NoError(t, here.Observe(t.Context(), key, func(a runtime.Availability) { changes <- a }))
		c, err := here.Client(key)
		require.NoError(t, err)
		defer c.Close()
		echo(t, ether.Start(1))
		up := <-changes
		require.True(t, up.Up)
		waited := up.Since.Sub(begin)
		require.LessOrEqual(t, waited, 100*time.Millisecond, "initial delay")
		require.GreaterOrEqual(t, waited, 10*time.Millisecond)

		r, err := c.Call(t.Context(), 1, false, []byte("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello", string(r.Payload))
		begin = time.Now()
		_, err = c.Call(t.Context(), 2, false, nil)
		require.ErrorIs(t, err, runtime.ErrTimeout)
		require.Equal(t, runtime.DefaultCallTimeout, time.Since(begin))

		time.Sleep(time.Minute)
		require.Empty(t, changes, "renewed all the time")
		lost := time.Now()
		ether.Drop(func(netip.AddrPort, netip.AddrPort, []byte) bool { return true })
		down := <-changes
		require.False(t, down.Up)
		require.Equal(t, runtime.ReasonTTL, down.Reason)
		require.InDelta(t, 3, down.Since.Sub(lost).Seconds(), 1.1, "3 s after the last offer")
		ether.Drop(nil)
		require.True(t, (<-changes).Up)
	})
}

// Events by unicast and multicast, and segments with a distance.
func TestEtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ether := someiptest.NewEther(t)
		hosts := []*runtime.Network{ether.Start(1), ether.Start(2), ether.Start(3)}
		for _, n := range hosts {
			require.NoError(t, n.Deploy(runtime.Deployment{Instance: key, Events: map[uint16]runtime.MessageConfig{
				0x8001: {TP: &tp.Rule{Separation: time.Second}},
			}}))
		}
		o := echo(t, hosts[0])
		require.NoError(t, o.SetField(0x8001, []byte("first")))
		notes := make(chan string, 10)
		for _, n := range hosts[1:] {
			c, err := n.Client(key)
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Subscribe(t.Context(), runtime.SubscribeConfig{
				Eventgroup: 1, OnEvent: func(n runtime.Notification) { notes <- string(n.Payload) },
			})
			require.NoError(t, err)
			require.Equal(t, "first", <-notes)
			time.Sleep(time.Second)
		}
		require.Equal(t, 1, o.Subscribers(0x8001), "by multicast")
		large := string(make([]byte, 5000)) // four segments
		begin := time.Now()
		require.NoError(t, o.Notify(0x8001, []byte(large)))
		require.Equal(t, large, <-notes)
		require.Equal(t, large, <-notes)
		require.Equal(t, 3*time.Second, time.Since(begin))
	})
}

func TestEtherRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ether := someiptest.NewEther(t)
		n := ether.Start(1)
		layer, err := secure.NewDTLS(secure.Config{PSK: &secure.PSK{}})
		require.NoError(t, err)
		require.NoError(t, n.Deploy(runtime.Deployment{Instance: runtime.InstanceKey{Service: 1, Instance: 1, Major: 1}, DTLS: layer}))
		_, err = n.Offer(runtime.ServiceConfig{Service: 1, Instance: 1, Major: 1, UDPPort: 31000})
		require.ErrorIs(t, err, runtime.ErrNotHere)
		_, err = runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{ether.Config(1)}})
		var used *endpoint.InUseError
		require.ErrorAs(t, err, &used)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	})
}

// IPv6, global and link-local with its zone (case 20).
func TestEtherIPv6(t *testing.T) {
	for _, prefix := range []string{"fd53::%d/64", "fe80::%d%%eth0/64"} {
		synctest.Test(t, func(t *testing.T) {
			ether := someiptest.NewEther(t)
			v6 := func(host int) func(*runtime.NetworkConfig) {
				return func(c *runtime.NetworkConfig) {
					addr, bits, _ := strings.Cut(fmt.Sprintf(prefix, host), "/")
					n, err := strconv.Atoi(bits)
					require.NoError(t, err)
					c.Address = netip.PrefixFrom(netip.MustParseAddr(addr).WithZone(""), n)
					if zone := netip.MustParseAddr(addr).Zone(); zone != "" {
						c.Interface = zone
					}
					c.SD.Group = netip.MustParseAddr("ff14::1")
				}
			}
			there, here := ether.Start(1, v6(1)), ether.Start(2, v6(2))
			o, err := there.Offer(runtime.ServiceConfig{
				Service: key.Service, Instance: key.Instance, Major: key.Major, UDPPort: runtime.AutoPort,
				Events:      []runtime.EventConfig{{ID: 0x8001, Eventgroups: []uint16{1}}},
				Eventgroups: []runtime.EventgroupConfig{{ID: 1, Multicast: netip.MustParseAddrPort("[ff14::2]:4000"), Threshold: 1}},
				Handler:     runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) { _ = r.Respond(r.Payload) }),
			})
			require.NoError(t, err)
			c, err := here.Client(key)
			require.NoError(t, err)
			defer c.Close()
			notes := make(chan string, 10)
			_, err = c.Subscribe(t.Context(), runtime.SubscribeConfig{
				Eventgroup: 1, OnEvent: func(n runtime.Notification) { notes <- string(n.Payload) },
			})
			require.NoError(t, err)
			time.Sleep(time.Second)
			r, err := c.Call(t.Context(), 1, false, []byte("six"))
			require.NoError(t, err)
			require.Equal(t, "six", string(r.Payload))
			require.NoError(t, o.Notify(0x8001, []byte("to all")))
			require.Equal(t, "to all", <-notes)
		})
	}
}
