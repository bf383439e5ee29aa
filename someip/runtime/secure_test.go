package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

func dtlsLayer(t *testing.T, secret string) *secure.DTLS {
	t.Helper()
	l, err := secure.NewDTLS(secure.Config{PSK: &secure.PSK{
		Identity: "gateway", Keys: map[string][]byte{"gateway": []byte(secret)},
	}})
	require.NoError(t, err)
	return l
}

// Calls, events and initial values by DTLS, also after the server restarted; who has
// not the key, or no protection, is not served.
func TestDTLS(t *testing.T) {
	d := someiptest.NewDomain(t)
	protected := func(secret string) runtime.Deployment {
		return runtime.Deployment{Instance: key, DTLS: dtlsLayer(t, secret)}
	}
	stack := d.StartStack(1)
	there, here, plain := stack.Network("lan"), d.Start(2), d.Start(3)
	deploy(t, protected("0123456789abcdef"), there, here)
	start := func(n *runtime.Network, value string) *runtime.Offering {
		cfg := service(newServer())
		cfg.TCPPort, cfg.Events = 0, cfg.Events[:2]
		o, err := n.Offer(cfg)
		require.NoError(t, err)
		require.NoError(t, o.SetField(field, []byte(value)))
		return o
	}
	o := start(there, "first")
	c := client(t, here)
	s := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group})
	require.Equal(t, note{field, "first", true}, receive(t, s.notes))
	require.Equal(t, "hello", string(call(t, c, echo, false, "hello").Payload))
	require.NoError(t, o.Notify(field, []byte("second")))
	require.Equal(t, note{field, "second", false}, receive(t, s.notes))

	bare := client(t, plain)
	available(t, bare, true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := bare.Call(ctx, echo, false, nil); done <- err }()
	require.Equal(t, "still", string(call(t, c, echo, false, "still").Payload))
	cancel()
	require.ErrorIs(t, receive(t, done), context.Canceled)

	eventually(t, func() bool { return here.DiscoveryStats().Received > 10 }, "some offers")
	runtime.Kill(stack)
	again := d.Start(1)
	deploy(t, protected("0123456789abcdef"), again)
	untilTold(t, start(again, "third"), s, field, "third")
	require.Equal(t, "back", string(call(t, c, echo, false, "back").Payload))

	cfg := multicastService(groupAddr(d, 0, 4000), 1)
	_, err := d.Start(4).Offer(cfg)
	require.NoError(t, err)
	secured := d.Start(5)
	deploy(t, protected("0123456789abcdef"), secured)
	_, err = secured.Offer(cfg)
	require.ErrorContains(t, err, "multicast")
}

// A port has one kind of protection.
func TestPortsAreProtectedInOneWay(t *testing.T) {
	n := someiptest.NewDomain(t).Start(1)
	deploy(t, runtime.Deployment{Instance: key, DTLS: dtlsLayer(t, "0123456789abcdef")}, n)
	cfg := service(nil)
	cfg.UDPPort = 31000
	_, err := n.Offer(cfg)
	require.NoError(t, err)
	cfg.Service++
	_, err = n.Offer(cfg)
	require.ErrorIs(t, err, runtime.ErrInUse)
}
