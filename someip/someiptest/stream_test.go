package someiptest_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// Calls and events over TCP: a connection for both, a new one to a server that was
// started anew, and none where nobody listens.
func TestEtherTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ether := someiptest.NewEther(t)
		start := func() (*runtime.Stack, *runtime.Offering) {
			stack := ether.StartStack(1)
			o, err := stack.Network("lan").Offer(runtime.ServiceConfig{
				Service: key.Service, Instance: key.Instance, Major: key.Major, TCPPort: runtime.AutoPort,
				Events: []runtime.EventConfig{{ID: 0x8001, Eventgroups: []uint16{1}, Field: true, Reliable: true}},
				Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
					if r.Method == 1 {
						_ = r.Respond(r.Payload)
					}
				}),
			})
			require.NoError(t, err)
			require.NoError(t, o.SetField(0x8001, []byte("first")))
			return stack, o
		}
		stack, o := start()
		here := ether.Start(2)
		c, err := here.Client(key)
		require.NoError(t, err)
		defer c.Close()
		notes := make(chan string, 10)
		sub, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
			Eventgroup: 1, Reliable: true, OnEvent: func(n runtime.Notification) { notes <- string(n.Payload) },
		})
		require.NoError(t, err)
		defer sub.Close()
		require.Equal(t, "first", <-notes)

		large := strings.Repeat("large ", 1<<17)
		r, err := c.Call(t.Context(), 1, true, []byte(large))
		require.NoError(t, err)
		require.Equal(t, large, string(r.Payload))
		require.NoError(t, o.Notify(0x8001, []byte("second")))
		require.Equal(t, "second", <-notes)
		begin := time.Now()
		_, err = c.Call(t.Context(), 2, true, nil)
		require.ErrorIs(t, err, runtime.ErrTimeout)
		require.Equal(t, runtime.DefaultCallTimeout, time.Since(begin))

		require.NoError(t, stack.Close())
		synctest.Wait()
		var gone *runtime.UnavailableError
		_, err = c.Call(t.Context(), 1, true, nil)
		require.ErrorAs(t, err, &gone)
		start()
		require.Equal(t, "first", <-notes)
		r, err = c.Call(t.Context(), 1, true, []byte("again"))
		require.NoError(t, err)
		require.Equal(t, "again", string(r.Payload))
	})
}

// A peer that reads nothing meets the write deadline; a connection that the peer closed
// ends behind what it had sent.
func TestEtherStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ether := someiptest.NewEther(t)
		at := netip.MustParseAddrPort("10.0.0.1:30501")
		l, err := ether.Listen(at)
		require.NoError(t, err)
		_, err = ether.Listen(at)
		require.ErrorAs(t, err, new(*endpoint.InUseError))
		own := netip.MustParseAddrPort("10.0.0.2:0")
		_, err = ether.Dial(t.Context(), own, netip.MustParseAddrPort("10.0.0.1:30502"))
		require.ErrorContains(t, err, "refused")
		there, err := ether.Dial(t.Context(), own, at)
		require.NoError(t, err)
		here, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, there.LocalAddr(), here.RemoteAddr())

		begin := time.Now()
		require.NoError(t, here.SetWriteDeadline(begin.Add(3*time.Second)))
		_, err = here.Write(make([]byte, 1<<20))
		require.ErrorContains(t, err, "timeout")
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.NoError(t, here.Close())
		rest, err := io.ReadAll(there)
		require.NoError(t, err)
		require.Len(t, rest, 256<<10)
		_, err = there.Write([]byte{1})
		require.ErrorContains(t, err, "reset")
		require.NoError(t, l.Close())
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
