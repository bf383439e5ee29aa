package runtime_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
	"carisma.dev/gateway/someip/tp"
)

func protectedBy(c runtime.E2EConfig, messages ...*map[uint16]runtime.MessageConfig) {
	for _, m := range messages {
		for id, mc := range *m {
			mc.E2E = &c
			(*m)[id] = mc
		}
	}
}

// protectedDeployment protects everything, and has TP as well (TP-12).
func protectedDeployment(c runtime.E2EConfig) runtime.Deployment {
	d := segmented(tp.Rule{})
	d.Responses[failSoft] = runtime.MessageConfig{}
	protectedBy(c, &d.Requests, &d.Responses, &d.Events)
	return d
}

var p07 = runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P07, DataID: 0x0A0B0C0D, MaxDelta: 1}, Drop: true}

func TestProtectedCalls(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			there, here := d.Start(1), d.Start(2)
			deploy(t, protectedDeployment(p07), there, here)
			s := newServer()
			offer(t, there, s)
			for range 2 { // each client has its own counters
				c := client(t, here)
				available(t, c, true)
				for _, payload := range []string{"", "hello", large(1381), large(5000)} {
					r := call(t, c, echo, reliable, payload)
					require.Equal(t, payload, string(r.Payload))
					require.Equal(t, e2e.OK, r.E2E.Status)
				}
				require.NoError(t, c.Send(t.Context(), tell, reliable, []byte("go")))
				require.Equal(t, "go", receive(t, s.told))
				r := call(t, c, failSoft, reliable, "")
				require.Equal(t, someip.ReturnCode(0x23), r.Code)
				require.Equal(t, e2e.OK, r.E2E.Status)
				r = call(t, c, 0x0777, reliable, "") // errors of the stack are bare (RC-4)
				require.Equal(t, someip.UnknownMethod, r.Code)
				require.Equal(t, e2e.NoNewData, r.E2E.Status)
			}
			require.Equal(t, runtime.E2EStats{OK: 10}, there.Stats().E2E)
			require.Equal(t, runtime.E2EStats{OK: 10}, here.Stats().E2E)
		})
	}
}

// A new subscriber of a field gets its value, and the others miss no counter.
func TestProtectedField(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here, other := d.Start(1), d.Start(2), d.Start(3)
	deploy(t, protectedDeployment(p07), there, here, other)
	o := offer(t, there, newServer())
	require.NoError(t, o.Notify(field, []byte("first")))
	a := subscribe(t, client(t, here), runtime.SubscribeConfig{Eventgroup: group})
	require.Equal(t, note{field, "first", true}, receive(t, a.notes))
	b := subscribe(t, client(t, other), runtime.SubscribeConfig{Eventgroup: group})
	require.Equal(t, note{field, "first", true}, receive(t, b.notes))
	require.NoError(t, o.Notify(field, []byte("second")))
	for _, s := range []*consumer{a, b} {
		require.Equal(t, note{field, "second", false}, receive(t, s.notes))
	}
	require.Equal(t, runtime.E2EStats{OK: 2}, here.Stats().E2E)
	require.Equal(t, runtime.E2EStats{OK: 2}, other.Stats().E2E)
}

// subscribedPeer subscribes a network to a scripted server.
func subscribedPeer(t *testing.T, c runtime.E2EConfig) (*runtime.Network, peer, chan runtime.Notification) {
	t.Helper()
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	dep := runtime.Deployment{Instance: key, Events: map[uint16]runtime.MessageConfig{event: {E2E: &c}}}
	deploy(t, dep, n)
	p := newPeer(t, d.SD(1))
	server := newPeer(t, d.AddrPort(1, 0))
	p.offer(d, server.Addr(), 1)
	notes := make(chan runtime.Notification, 10)
	states := make(chan runtime.SubscriptionStatus, 10)
	_, err := client(t, n).Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: group,
		OnEvent: func(n runtime.Notification) {
			n.Payload = append([]byte(nil), n.Payload...)
			notes <- n
		},
		OnState: func(s runtime.SubscriptionStatus) { states <- s },
	})
	require.NoError(t, err)
	entry, options := p.ReceiveSD(0x06)
	p.ack(d, entry, 2)
	for receive(t, states).State != runtime.SubscriptionActive {
	}
	server.to = options[0].Endpoint
	return n, server, notes
}

// protectedEvent returns an event as a protector of the configuration sends it.
func protectedEvent(t *testing.T, c e2e.Config, counter uint32, payload string) []byte {
	t.Helper()
	p, err := e2e.NewProtector(c)
	require.NoError(t, err)
	require.NoError(t, p.SetCounter(counter))
	m := someip.NewNotification(key.Service, event, key.Major, 1, []byte(payload))
	b, err := p.AppendMessage(nil, m)
	require.NoError(t, err)
	return b
}

func TestVerdicts(t *testing.T) {
	c := e2e.Config{Profile: e2e.P04, DataID: 7, MaxDelta: 3}
	bad := protectedEvent(t, c, 9, "bad")
	bad[len(bad)-1] ^= 1
	short := someip.NewNotification(key.Service, event, key.Major, 1, []byte("12345678901")).Append(nil) // case 110
	script := []struct {
		b      []byte
		status e2e.Status
	}{
		{protectedEvent(t, c, 1, "1"), e2e.OK},
		{protectedEvent(t, c, 3, "3"), e2e.OKSomeLost},
		{protectedEvent(t, c, 3, "3"), e2e.Repeated},
		{bad, e2e.Error},
		{short, e2e.Error},
		{protectedEvent(t, c, 99, "99"), e2e.WrongSequence},
		{protectedEvent(t, c, 100, "100"), e2e.OK},
	}
	for _, drop := range []bool{false, true} {
		n, p, notes := subscribedPeer(t, runtime.E2EConfig{Config: c, Drop: drop})
		for _, step := range script {
			p.Send(p.to, step.b)
			if drop && step.status != e2e.OK && step.status != e2e.OKSomeLost {
				continue
			}
			note := receive(t, notes)
			require.Equal(t, step.status, note.E2E.Status)
			if step.status == e2e.Error {
				require.Error(t, note.E2E.Err)
			}
		}
		want := runtime.E2EStats{OK: 2, SomeLost: 1, Repeated: 1, WrongSequence: 1, Error: 2}
		if drop {
			want.Dropped = 4
		}
		require.Equal(t, want, n.Stats().E2E)
	}
}

// Case 109: strict, a replayed message does not become the reference.
func TestCase109Replay(t *testing.T) {
	c := e2e.Config{Profile: e2e.P04, DataID: 7, MaxDelta: 1, Strict: true}
	_, p, notes := subscribedPeer(t, runtime.E2EConfig{Config: c, Drop: true})
	for _, counter := range []uint32{4, 5, 2, 3, 6} {
		p.Send(p.to, protectedEvent(t, c, counter, string(rune('0'+counter))))
	}
	for _, want := range "456" {
		require.Equal(t, string(want), string(receive(t, notes).Payload))
	}
}

// Case 107: the bytes of vsomeip's P04, whose data id has the instance in it.
func TestCase107VsomeipInstance(t *testing.T) {
	for vsomeip, want := range map[bool]string{
		false: "12348777000000180000000101010200 00180000 000b0c0d 4b3f8451 01020304",
		true:  "12348777000000180000000101010200 00180000 010b0c0d bbb17e24 01020304",
	} {
		d := someiptest.NewDomain(t)
		n := d.Start(1)
		k := runtime.InstanceKey{Service: 0x1234, Instance: 1, Major: 1}
		deploy(t, runtime.Deployment{
			Instance: runtime.InstanceKey{Service: 0x1234, Instance: someip.AnyInstance, Major: 1},
			Events: map[uint16]runtime.MessageConfig{0x8777: {
				E2E: &runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P04, DataID: 0x0B0C0D}, Vsomeip: vsomeip},
			}},
		}, n)
		o, err := n.Offer(runtime.ServiceConfig{
			Service: k.Service, Instance: k.Instance, Major: k.Major, UDPPort: runtime.AutoPort,
			Events: []runtime.EventConfig{{ID: 0x8777, Eventgroups: []uint16{group}}},
		})
		require.NoError(t, err)
		p, events := newPeer(t, d.SD(2)), newPeer(t, d.AddrPort(2, 0))
		p.subscribe(d, o, events.Addr())
		eventually(t, func() bool { return o.Subscribers(0x8777) == 1 }, "subscribed")
		require.NoError(t, o.Notify(0x8777, []byte{1, 2, 3, 4}))
		got := events.next()
		require.Equal(t, strings.ReplaceAll(want, " ", ""), hex.EncodeToString(got.Append(nil)))
	}
}

// A bad answer ends its call at once.
func TestBadAnswerFailsItsCall(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here := d.Start(1), d.Start(2)
	dep := protectedDeployment(p07)
	deploy(t, dep, here)
	other := p07
	other.DataID++
	dep = protectedDeployment(p07)
	protectedBy(other, &dep.Responses)
	deploy(t, dep, there)
	offer(t, there, newServer())
	c := client(t, here)
	available(t, c, true)
	_, err := c.Call(t.Context(), echo, false, []byte("x"))
	var bad *runtime.E2EError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, e2e.Error, bad.Result.Status)
	require.ErrorIs(t, err, e2e.ErrDataID)
}

// The vsomeip form of P04 exists for instances of one byte only (case 107).
func TestProtectionRefused(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(1)
	c := runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P04}, Vsomeip: true}
	any := key
	any.Instance = someip.AnyInstance
	dep := runtime.Deployment{Instance: key, Events: map[uint16]runtime.MessageConfig{event: {E2E: &c}}}
	var bad *e2e.ConfigError
	require.ErrorAs(t, n.Deploy(dep), &bad)
	dep.Instance = any
	require.NoError(t, n.Deploy(dep))
	_, err := n.Client(key)
	require.ErrorAs(t, err, &bad)
	_, err = n.Offer(service(nil))
	require.ErrorAs(t, err, &bad)
}

// Protection allocates nothing beyond what a plain call does.
func TestProtectedCallAllocates(t *testing.T) {
	skipIfRaced(t)
	d := someiptest.NewDomain(t)
	there, here := d.Start(1), d.Start(2)
	deploy(t, protectedDeployment(p07), there, here)
	offer(t, there, newServer())
	c := client(t, here)
	available(t, c, true)
	payload := make([]byte, 8)
	n := testing.AllocsPerRun(500, func() { _, _ = c.Call(t.Context(), echo, false, payload) })
	require.LessOrEqual(t, n, 2.0)
}
