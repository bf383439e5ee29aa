package runtime_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
	"carisma.dev/gateway/someip/tp"
)

// FuzzReceive: no datagram does harm, and only whole requests are answered, each
// at most once (RC-6, case 1).
func FuzzReceive(f *testing.F) {
	good := request(echo, 1, "payload").Append(nil)
	f.Add(good)
	f.Add(append(bytes.Clone(good), bytes.Repeat([]byte{0xA5}, 32)...))
	f.Add(append(request(fail, 1, "").Append(nil), request(tell, 2, "x").Append(nil)...))
	f.Add(someip.NewNotification(key.Service, event, key.Major, 1, []byte("x")).Append(nil))
	f.Add(someip.Header{Service: key.Service, Method: echo, Client: 0x1120, Session: 1}.Response([]byte("y")).Append(nil))
	f.Add([]byte(someip.ClientCookie))
	for _, b := range corpus.Messages(f, 32, nil) {
		f.Add(b)
	}

	d := someiptest.NewDomain(f)
	n := d.Start(1)
	o := offer(f, n, runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
		if r.Method == fail {
			_ = r.Fail(0x23, true, r.Payload)
			return
		}
		_ = r.Respond(r.Payload)
	}))
	client(f, n)
	f.Fuzz(func(t *testing.T, b []byte) {
		p := someiptest.NewPeer(t, d.AddrPort(2, 0))
		most := 0
		for rest := b; len(rest) > 0; {
			m, tail, err := someip.ParseMessage(rest)
			if err != nil {
				break
			}
			rest = tail
			if m.Type == someip.Request {
				most++
			}
		}
		runtime.ReceiveAtClient(n, p.Addr(), b)
		runtime.ReceiveAtServer(o, p.Addr(), b)
		runtime.ReceiveAtServer(o, p.Addr(), request(echo, 0xFFFF, "the end").Append(nil))
		for answers := 0; ; answers++ {
			m, _ := p.ReceiveOne()
			if string(m.Payload) == "the end" {
				break
			}
			require.Less(t, answers, most)
		}
		p.Nothing()
	})
}

// FuzzReceiveDeployed: the same where messages are segmented and protected. Only what
// is whole and correct reaches the application.
func FuzzReceiveDeployed(f *testing.F) {
	d := someiptest.NewDomain(f)
	n := d.Start(1)
	deployment := protectedDeployment(p07)
	deploy(f, deployment, n)
	good, err := e2e.NewProtector(p07.Config)
	require.NoError(f, err)
	whole, err := good.AppendMessage(nil, request(tell, 1, "payload"))
	require.NoError(f, err)
	whole[14] = byte(someip.RequestNoReturn)
	f.Add(whole)
	long, _, err := someip.ParseMessage(request(tell, 2, string(make([]byte, 2000))).Append(nil))
	require.NoError(f, err)
	seg, err := tp.Rule{}.Segment(long)
	require.NoError(f, err)
	first, _ := seg.Append(nil)
	f.Add(first)
	second, _ := seg.Append(nil)
	f.Add(append(second, first...))
	for _, b := range corpus.Messages(f, 16, func(m someip.Message) bool { return m.Type.TP() }) {
		f.Add(b)
	}

	o := offer(f, n, runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
		if _, protected := deployment.Requests[r.Method]; protected != r.E2E.Usable() {
			panic(r.E2E)
		}
		if !r.NoReturn {
			_ = r.Respond(r.Payload)
		}
	}))
	c := client(f, n)
	_, err = c.Subscribe(context.Background(), runtime.SubscribeConfig{Eventgroup: group})
	require.NoError(f, err)
	from := d.AddrPort(2, 4000)
	f.Fuzz(func(t *testing.T, b []byte) {
		runtime.ReceiveAtServer(o, from, b)
		runtime.ReceiveAtClient(n, from, b)
		require.LessOrEqual(t, n.TPStats().Bytes, 64<<20)
	})
}
