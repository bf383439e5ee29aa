package runtime_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/internal/authority"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// certified is a deployment by TLS 1.3 and DTLS 1.2, of a host with a certificate of one
// authority that trusts another.
func certified(t *testing.T, mine, trusted *authority.Authority, host netip.Addr) runtime.Deployment {
	t.Helper()
	cfg := secure.Config{Certificate: mine.Of(t, host.String()), Roots: trusted.Pool()}
	overTCP, err := secure.NewTLS(cfg)
	require.NoError(t, err)
	overUDP, err := secure.NewDTLS(cfg)
	require.NoError(t, err)
	return runtime.Deployment{Instance: key, TLS: overTCP, DTLS: overUDP}
}

// untilTold notifies a value until a consumer has it: who subscribes while it is new, or has
// no association yet, may miss it once.
func untilTold(t *testing.T, o *runtime.Offering, s *consumer, id uint16, value string) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		require.NoError(t, o.Notify(id, []byte(value)))
		for waiting := true; waiting; {
			select {
			case n := <-s.notes:
				if n.event == id && n.payload == value {
					return
				}
			case <-again.C:
				waiting = false
			case <-late.C:
				require.FailNow(t, "the value does not come")
			}
		}
	}
}

// Methods, events and fields by TLS 1.3 and DTLS 1.2 with certificates of both sides,
// and the same again after the server restarted.
func TestCertificates(t *testing.T) {
	d, ca := someiptest.NewDomain(t), authority.New(t)
	here := d.Start(2)
	deploy(t, certified(t, ca, ca, d.Addr(2)), here)
	c := client(t, here)
	var datagrams, stream *consumer
	next := func(s *consumer, want note) {
		t.Helper()
		for got := receive(t, s.notes); got != want; got = receive(t, s.notes) {
			require.NotEqual(t, uint16(event), got.event, "only the values of fields come again")
		}
	}
	for _, run := range []string{"first", "second"} {
		stack := d.StartStack(1)
		there := stack.Network("lan")
		deploy(t, certified(t, ca, ca, d.Addr(1)), there)
		s := newServer()
		o := offer(t, there, s)
		require.NoError(t, o.SetField(field, []byte(run)))
		require.NoError(t, o.SetField(tcpField, []byte(run)))
		if datagrams == nil {
			datagrams = subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{event, field}})
			stream = subscribe(t, c, runtime.SubscribeConfig{Eventgroup: tcpGroup, Reliable: true, Events: []uint16{tcpField}})
			next(datagrams, note{field, run, true})
			next(stream, note{tcpField, run, true})
		}
		untilTold(t, o, datagrams, field, run)
		untilTold(t, o, stream, tcpField, run)
		for _, reliable := range transports {
			require.Equal(t, run, string(call(t, c, echo, reliable, run).Payload))
			require.Equal(t, someip.ReturnCode(0x23), call(t, c, fail, reliable, "").Code)
			require.NoError(t, c.Send(t.Context(), tell, reliable, []byte(run)))
			require.Equal(t, run, receive(t, s.told))
		}
		require.NoError(t, o.Notify(event, []byte(run)))
		next(datagrams, note{event, run, true})
		require.NoError(t, o.Notify(tcpField, []byte("changed")))
		next(stream, note{tcpField, "changed", false})
		require.Zero(t, there.Stats().HandshakesFailed+here.Stats().HandshakesFailed)
		eventually(t, func() bool { return here.DiscoveryStats().Received > 10 }, "some offers")
		runtime.Kill(stack)
	}
}

// Who has no certificate that the other trusts is not served and uses nothing: the call
// says so, and both sides count it.
func TestWrongCertificate(t *testing.T) {
	d, ca, other := someiptest.NewDomain(t), authority.New(t), authority.New(t)
	there := d.Start(1)
	deploy(t, certified(t, ca, ca, d.Addr(1)), there)
	s := newServer()
	offer(t, there, s)
	for name, wrong := range map[string]runtime.Deployment{
		"of the client": certified(t, other, ca, d.Addr(2)),
		"of the server": certified(t, ca, other, d.Addr(2)),
	} {
		t.Run(name, func(t *testing.T) {
			stack := d.StartStack(2)
			here := stack.Network("lan")
			deploy(t, wrong, here)
			c := client(t, here)
			available(t, c, true)
			before := there.Stats().HandshakesFailed
			for transport, reliable := range transports {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				_, err := c.Call(ctx, echo, reliable, []byte("secret"))
				cancel()
				var gone *runtime.UnavailableError
				require.ErrorAs(t, err, &gone, transport)
				if name == "of the server" {
					var refused *endpoint.HandshakeError
					require.ErrorAs(t, err, &refused)
					require.Equal(t, d.Addr(1), refused.Peer.Addr())
					require.ErrorContains(t, err, "unknown authority")
					require.Equal(t, runtime.ReasonUnreachable, gone.Reason)
				}
			}
			eventually(t, func() bool { return there.Stats().HandshakesFailed-before >= 2 }, "by TLS and by DTLS")
			if name == "of the server" { // with TLS 1.3 only who refuses knows
				require.EqualValues(t, 2, here.Stats().HandshakesFailed)
			}
			require.NoError(t, stack.Close())
		})
	}
	require.Zero(t, s.last.Load(), "no request came")
}

// The same with a pre-shared key that is not that of the server: the call need not wait
// for its own time-out.
func TestWrongKey(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here := d.Start(1), d.Start(2)
	withKey := func(secret string) runtime.Deployment {
		layer, err := secure.NewDTLS(secure.Config{HandshakeTimeout: time.Second, PSK: &secure.PSK{
			Identity: "gateway", Keys: map[string][]byte{"gateway": []byte(secret)},
		}})
		require.NoError(t, err)
		return runtime.Deployment{Instance: key, DTLS: layer}
	}
	deploy(t, withKey("0123456789abcdef"), there)
	deploy(t, withKey("fedcba9876543210"), here)
	s := newServer()
	offer(t, there, s)
	c := client(t, here)
	available(t, c, true)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.Call(ctx, echo, false, []byte("secret"))
	require.ErrorAs(t, err, new(*endpoint.HandshakeError))
	require.ErrorAs(t, err, new(*runtime.UnavailableError))
	require.Positive(t, here.Stats().HandshakesFailed)
	eventually(t, func() bool { return there.Stats().HandshakesFailed > 0 }, "the server counts it")
	require.Zero(t, s.last.Load(), "no request came")
}
