package runtime_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

// The server may send the events of a group by multicast once it said so in the
// Ack (SUB-14), also from another port than the offered one.
func TestMulticastEvents(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	s := newPeer(t, d.SD(1))
	server, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: d.AddrPort(1, 0)})
	require.NoError(t, err)
	defer server.Close()
	s.offer(d, server.LocalAddr(), 1)
	sub := subscribe(t, client(t, n), runtime.SubscribeConfig{Eventgroup: group})
	entry, _ := s.ReceiveSD(sd.Subscribe)
	events := netip.AddrPortFrom(d.Group, someiptest.FreePort(t))
	s.ack(d, entry, 2, sd.MulticastOption(events))
	sub.until(t, runtime.SubscriptionActive)

	m := someip.NewNotification(key.Service, event, key.Major, 1, []byte("to all"))
	require.NoError(t, server.Send(events, m.Append(nil)))
	require.Equal(t, note{event, "to all", true}, receive(t, sub.notes))
	other, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: d.AddrPort(1, 0)})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Send(events, m.Append(nil)))
	require.Equal(t, note{event, "to all", false}, receive(t, sub.notes))

	// Requests by multicast are nobody's (RC-6).
	request := someip.NewRequest(key.Service, echo, key.Major, 1, 1, nil)
	require.NoError(t, server.Send(events, request.Append(nil)))
	eventually(t, func() bool { return n.Stats().WrongType == 1 }, "counted")
	sub.Close()
	stop, _ := s.ReceiveSD(sd.Subscribe)
	require.Zero(t, stop.TTL)
}

// What is offered over TCP but does not take connections is unavailable to calls,
// and tried again for subscriptions with each offer.
func TestTCPServerThatRefuses(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	ln, err := net.Listen("tcp", d.AddrPort(1, 0).String())
	require.NoError(t, err)
	at := ln.Addr().(*net.TCPAddr).AddrPort()
	require.NoError(t, ln.Close())

	s := newPeer(t, d.SD(1))
	s.offerAt(d, 1, sd.EndpointOption(at, sd.TCP))
	c := client(t, n)
	available(t, c, true)
	_, err = c.Call(context.Background(), echo, true, nil)
	var gone *runtime.UnavailableError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, runtime.ReasonUnreachable, gone.Reason)
	require.Error(t, gone.Err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Call(ctx, echo, true, nil)
	require.ErrorIs(t, err, context.Canceled)

	sub := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
	eventually(t, func() bool { return n.Stats().ConnectionsFailed >= 2 }, "tried")
	require.Equal(t, runtime.SubscriptionWaiting, sub.Status().State)

	ln, err = net.Listen("tcp", at.String())
	require.NoError(t, err)
	defer ln.Close()
	s.offerAt(d, 2, sd.EndpointOption(at, sd.TCP))
	conn, err := ln.Accept()
	require.NoError(t, err)
	defer conn.Close()
	entry, opts := s.ReceiveSD(sd.Subscribe)
	require.Equal(t, conn.RemoteAddr().(*net.TCPAddr).AddrPort(), opts[0].Endpoint, "of exactly that connection (SUB-3)")
	s.ack(d, entry, 3)
	sub.until(t, runtime.SubscriptionActive)

	// Framing that is lost costs the connection (TCP-5), and the calls on it (SES-7).
	errs := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), echo, true, nil)
		errs <- err
	}()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Read(make([]byte, 100))
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, 16))
	require.NoError(t, err)
	require.ErrorAs(t, receive(t, errs), &gone)
	require.Equal(t, runtime.ReasonConnection, gone.Reason)
	st := sub.until(t, runtime.SubscriptionWaiting)
	require.Equal(t, runtime.ReasonConnection, st.Reason)
}
