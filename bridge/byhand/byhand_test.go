package byhand_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/bridge/byhand"
	"carisma.dev/gateway/bridge/jsoncodec"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"6001.0001": "6001.0001 v*", "0x6001.0x1": "6001.0001 v*", "6001": "6001.* v*", "6001.*": "6001.* v*", "A1b2.c": "a1b2.000c v*",
	} {
		key, err := byhand.ParseInstance(text)
		require.NoError(t, err)
		require.Equal(t, want, key.String())
	}
	for _, bad := range []string{"", "x", "6001.", "6001.x", "0", "ffff", "12345", "6001.0"} {
		_, err := byhand.ParseInstance(bad)
		require.Error(t, err, bad)
	}
	for text, want := range map[string]string{"": "", "00ff": "\x00\xff", "0x00 FF": "\x00\xff", "00:ff,1a": "\x00\xff\x1a"} {
		b, err := byhand.ParseHex(text)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for _, bad := range []string{"0", "xx", "00f"} {
		_, err := byhand.ParseHex(bad)
		require.Error(t, err, bad)
	}
}

// A played service answers as it was told, keeps its fields, and is found.
func TestPlay(t *testing.T) {
	d := someiptest.NewDomain(t)
	set, err := proto.Load("../../vehicles/cabin/interfaces")
	require.NoError(t, err)
	iface := set.Interface("cabin.climate.v1.Climate")
	codec, err := jsoncodec.New(set.Descriptors(iface.FullName()))
	require.NoError(t, err)
	requests := make(chan byhand.Request, 8)
	subscribers := make(chan string, 8)
	cfg := byhand.PlayedConfig{
		Network: d.Start(1), Interface: iface, Codec: codec, Instance: 1,
		Answers:       map[string]string{"Boost": `{"granted":7}`, "GetTargetTemperature": `{"celsius":19.5}`},
		OnRequest:     func(r byhand.Request) { requests <- r },
		OnSubscribers: func(rpc string, n int) { subscribers <- rpc },
	}
	p, err := byhand.Play(cfg)
	require.NoError(t, err)
	defer p.Stop()
	_, err = byhand.Play(byhand.PlayedConfig{Network: cfg.Network, Interface: iface, Codec: codec, Instance: 2, Answers: map[string]string{"Nope": "{}"}})
	require.ErrorContains(t, err, "no method Nope")
	_, err = byhand.Play(byhand.PlayedConfig{Network: cfg.Network, Interface: iface, Codec: codec, Instance: 2, Answers: map[string]string{"Boost": "{]"}})
	require.ErrorContains(t, err, "the answer of Boost")

	n := d.Start(2)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	filter, err := byhand.ParseInstance("4001")
	require.NoError(t, err)
	found, err := n.Await(ctx, filter)
	require.NoError(t, err)
	require.Equal(t, "4001.0001 v1", found.Key.String())
	c, err := n.Client(found.Key)
	require.NoError(t, err)
	defer c.Close()

	call := func(rpc, request string) string {
		for _, m := range iface.AllMethods() {
			if m.RPC != rpc {
				continue
			}
			payload, err := codec.Payload(m.In, []byte(request))
			require.NoError(t, err)
			resp, err := c.Call(ctx, m.SOMEIP.ID, m.SOMEIP.Reliable, payload)
			require.NoError(t, err)
			require.Equal(t, someip.OK, resp.Code)
			out, err := codec.JSON(m.Out, resp.Payload)
			require.NoError(t, err)
			return string(out)
		}
		t.Fatal("no rpc " + rpc)
		return ""
	}
	require.Equal(t, `{"granted":7}`, call("Boost", `{"seconds":3}`))
	got := receive(t, requests)
	require.Equal(t, "Boost", got.RPC)
	require.Equal(t, `{"seconds":3}`, string(got.Request))
	require.Equal(t, `{"celsius":19.5}`, call("GetTargetTemperature", ""))

	notes := make(chan string, 8)
	event := p.Event("TargetTemperature")
	require.NotNil(t, event)
	require.Nil(t, p.Event("Nope"))
	sub, err := c.Subscribe(ctx, runtime.SubscribeConfig{
		Eventgroup: event.SOMEIP.Eventgroups[0], Events: []uint16{event.SOMEIP.ID}, Unreliable: true,
		OnEvent: func(n runtime.Notification) {
			text, err := codec.JSON(event.Args, n.Payload)
			if err == nil {
				notes <- string(text)
			}
		},
	})
	require.NoError(t, err)
	defer sub.Close()
	require.Equal(t, `{"celsius":19.5}`, receive(t, notes))
	require.Equal(t, "WatchTargetTemperature", receive(t, subscribers))
	require.Equal(t, `{"celsius":22}`, call("SetTargetTemperature", `{"celsius":22}`))
	require.Equal(t, `{"celsius":22}`, receive(t, notes))
	require.NoError(t, p.Notify(event, `{"celsius":23}`))
	require.Equal(t, `{"celsius":23}`, receive(t, notes))
	require.Equal(t, `{"celsius":23}`, call("GetTargetTemperature", ""))
	require.Error(t, p.Notify(event, "{]"))

	resp, err := c.Call(ctx, 0x0004, false, []byte{1}) // Boost takes two bytes
	require.NoError(t, err)
	require.Equal(t, someip.MalformedMessage, resp.Code)

	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	all, err := byhand.Look(short, n, filter)
	require.NoError(t, err)
	require.Len(t, all, 1, "what is known already is told at once")
	require.Equal(t, found.Key, all[0].Key)
}
