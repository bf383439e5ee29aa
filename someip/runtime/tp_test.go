package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
	"carisma.dev/gateway/someip/tp"
)

// segmented is the deployment of the tests with TP in both directions.
func segmented(rule tp.Rule) runtime.Deployment {
	tp := runtime.MessageConfig{TP: &rule}
	return runtime.Deployment{
		Instance:  key,
		Requests:  map[uint16]runtime.MessageConfig{echo: tp, tell: tp},
		Responses: map[uint16]runtime.MessageConfig{echo: tp, fail: tp},
		Events:    map[uint16]runtime.MessageConfig{event: tp, field: tp},
	}
}

func deploy(tb testing.TB, d runtime.Deployment, networks ...*runtime.Network) {
	tb.Helper()
	for _, n := range networks {
		require.NoError(tb, n.Deploy(d))
	}
}

func large(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return string(b)
}

func TestSegmentedCalls(t *testing.T) {
	for name, rule := range map[string]tp.Rule{
		"as fast as possible": {},
		"apart":               {SegmentLength: 640, Separation: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			s := newServer()
			there, here := d.Start(1), d.Start(2)
			deploy(t, segmented(rule), there, here)
			offer(t, there, s)
			c := client(t, here)
			available(t, c, true)
			for _, size := range []int{0, 1400, 1401, 5000, 100_000} {
				want := large(size)
				require.Equal(t, want, string(call(t, c, echo, false, want).Payload), size)
			}
			// Messages that a receiver could not tell apart do not get mixed up.
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 10 {
						want := large(5000)
						require.Equal(t, want, string(call(t, c, echo, false, want).Payload))
					}
				})
			}
			all.Wait()
			want := large(3000)
			require.NoError(t, c.Send(t.Context(), tell, false, []byte(want)))
			require.Equal(t, want, receive(t, s.told))
			require.Zero(t, there.TPStats().Open)
			require.EqualValues(t, 84, there.TPStats().Completed)
			require.Zero(t, there.Stats().Segments)

			_, err := c.Call(t.Context(), failSoft, false, make([]byte, 1401)) // not configured: case 11
			require.ErrorIs(t, err, runtime.ErrTooLarge)
		})
	}
}

func TestSegmentedEvents(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here, other := d.Start(1), d.Start(2), d.Start(3)
	deploy(t, segmented(tp.Rule{}), there, here, other)
	o := offer(t, there, newServer())
	first, second := large(5000), large(6000)
	require.NoError(t, o.SetField(field, []byte(first)))
	for _, n := range []*runtime.Network{here, other} {
		s := subscribe(t, client(t, n), runtime.SubscribeConfig{Eventgroup: group})
		require.Equal(t, note{field, first, true}, receive(t, s.notes))
		s.until(t, runtime.SubscriptionActive)
		require.NoError(t, o.Notify(event, []byte(second)))
		require.Equal(t, note{event, second, true}, receive(t, s.notes))
	}
}

// A message whose segments keep a distance holds up nothing but its successors.
func TestSeparationHoldsUpNothingElse(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here := d.Start(1), d.Start(2)
	slow := segmented(tp.Rule{Separation: time.Hour})
	delete(slow.Events, field)
	deploy(t, slow, there, here)
	o := offer(t, there, newServer())
	s := subscribe(t, client(t, here), runtime.SubscribeConfig{Eventgroup: group})
	eventually(t, func() bool { return o.Subscribers(event) == 1 && o.Subscribers(field) == 1 }, "subscribed")
	for range 3 {
		require.NoError(t, o.Notify(event, make([]byte, 5000)))
	}
	require.NoError(t, o.Notify(field, []byte("v")))
	require.Equal(t, note{field, "v", true}, receive(t, s.notes))
	require.EqualValues(t, 1, here.TPStats().Segments)

	queued := 3
	for ; o.Notify(event, make([]byte, 5<<20)) == nil && there.Stats().EventsDropped == 0; queued++ {
	}
	require.Less(t, queued, 12, "what waits is bounded")
}

// segments returns the datagrams of a segmented message.
func segments(t *testing.T, m someip.Message) (list [][]byte) {
	t.Helper()
	s, err := tp.Rule{}.Segment(m)
	require.NoError(t, err)
	for more := true; more; {
		var b []byte
		b, more = s.Append(nil)
		list = append(list, b)
	}
	return list
}

// TP-10: segments of what is not configured are dropped; the datagram is read on.
func TestSegmentsNotConfigured(t *testing.T) {
	n, to, p, _ := served(t)
	for _, b := range segments(t, request(echo, 1, large(3000))) {
		p.Send(to, append(b, request(echo, 2, "next").Append(nil)...))
		require.Equal(t, "next", string(p.next().Payload))
	}
	require.EqualValues(t, 3, n.Stats().Segments)
	require.Zero(t, n.TPStats().Segments)
	runtime.ReceiveAtClient(n, to, segments(t, someip.NewNotification(key.Service, event, key.Major, 1, make([]byte, 2000)))[0])
	require.EqualValues(t, 4, n.Stats().Segments, "of an event that nobody subscribed to")
}

// servedSegments is served with TP configured.
func servedSegments(t *testing.T, alter ...func(*runtime.NetworkConfig)) (*runtime.Network, *runtime.Offering, *someiptest.Domain) {
	t.Helper()
	d := someiptest.NewDomain(t)
	n := d.Start(1, alter...)
	deploy(t, segmented(tp.Rule{}), n)
	return n, offer(t, n, newServer()), d
}

// Case 28: a lost segment costs its message and no other.
func TestCase28LostSegment(t *testing.T) {
	n, o, d := servedSegments(t)
	p := newPeer(t, d.AddrPort(2, 0))
	for i, b := range segments(t, request(echo, 1, large(5000))) {
		if i != 1 {
			p.Send(o.Endpoints().UDP, b)
		}
	}
	want := large(2000)
	for _, b := range segments(t, request(echo, 2, want)) {
		p.Send(o.Endpoints().UDP, b)
	}
	first := p.next()
	require.EqualValues(t, 2, first.Session)
	require.Equal(t, someip.Response|someip.FlagTP, first.Type) // case 31
	second := p.next()
	require.Equal(t, someip.Response|someip.FlagTP, second.Type)
	require.Equal(t, want, string(first.Payload[tp.HeaderSize:])+string(second.Payload[tp.HeaderSize:]))
	require.EqualValues(t, 1, n.TPStats().Cancelled[tp.Superseded])
	p.Nothing()
}

// Case 32: two clients with the same ids at the same time.
func TestCase32ParallelClients(t *testing.T) {
	_, o, d := servedSegments(t)
	a, b := newPeer(t, d.AddrPort(2, 0)), newPeer(t, d.AddrPort(3, 0))
	forA, forB := large(1408), large(1408)
	ofA, ofB := segments(t, request(echo, 1, forA)), segments(t, request(echo, 1, forB))
	for i := range ofA {
		a.Send(o.Endpoints().UDP, ofA[i])
		b.Send(o.Endpoints().UDP, ofB[i])
	}
	whole := func(p peer) string {
		return string(p.next().Payload[tp.HeaderSize:]) + string(p.next().Payload[tp.HeaderSize:])
	}
	require.Equal(t, forA, whole(a))
	require.Equal(t, forB, whole(b))
}

// What stays unfinished goes by the clock of the network.
func TestUnfinishedMessageTimesOut(t *testing.T) {
	gone := make(chan tp.Cancelled, 1)
	n, o, d := servedSegments(t, func(c *runtime.NetworkConfig) {
		c.Reassembly = tp.Config{Timeout: 10 * time.Millisecond, OnCancel: func(c tp.Cancelled) { gone <- c }}
		c.SD.CyclicOfferDelay = time.Hour // nothing else wakes it
	})
	p := newPeer(t, d.AddrPort(2, 0))
	p.Send(o.Endpoints().UDP, segments(t, request(echo, 1, large(5000)))[0])
	c := receive(t, gone)
	require.Equal(t, tp.TimedOut, c.Reason)
	require.Equal(t, p.Addr(), c.Path.From)
	require.Zero(t, n.TPStats().Open)
}

// A message may not exceed what is configured for it.
func TestSegmentedLimit(t *testing.T) {
	d := someiptest.NewDomain(t)
	there, here := d.Start(1), d.Start(2)
	dep := segmented(tp.Rule{})
	dep.Requests[echo] = runtime.MessageConfig{TP: &tp.Rule{}, MaxPayload: 4000}
	deploy(t, dep, there)
	dep.Requests = map[uint16]runtime.MessageConfig{echo: {TP: &tp.Rule{}}}
	deploy(t, dep, here)
	offer(t, there, newServer())
	c := client(t, here)
	available(t, c, true)
	require.Len(t, call(t, c, echo, false, large(4000)).Payload, 4000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := c.Call(ctx, echo, false, make([]byte, 4001)); done <- err }()
	eventually(t, func() bool { return there.TPStats().Dropped[tp.TooLong] == 1 }, "dropped")
	cancel()
	require.ErrorIs(t, receive(t, done), context.Canceled)
}

func TestDeployRefuses(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(1)
	require.ErrorContains(t, n.Deploy(runtime.Deployment{}), "must be given")
	bad := segmented(tp.Rule{SegmentLength: 17})
	require.ErrorIs(t, n.Deploy(bad), tp.ErrSegmentLength)
	good := segmented(tp.Rule{})
	deploy(t, good, n)
	offer(t, n, newServer())
	deploy(t, segmented(tp.Rule{}), n) // the same again
	require.ErrorIs(t, n.Deploy(runtime.Deployment{Instance: key}), runtime.ErrInUse)
	everywhere := key
	everywhere.Instance = someip.AnyInstance
	require.ErrorIs(t, n.Deploy(runtime.Deployment{Instance: everywhere}), runtime.ErrInUse)
	other := d.Start(2)
	client(t, other)
	require.ErrorIs(t, other.Deploy(good), runtime.ErrInUse)
}

// A peer that vanishes while its message waits costs nothing (and nobody).
func TestLaneEndsWithItsStack(t *testing.T) {
	d := someiptest.NewDomain(t)
	stack := d.StartStack(1)
	n := stack.Network("lan")
	deploy(t, segmented(tp.Rule{Separation: time.Hour}), n)
	o := offer(t, n, newServer())
	p := newPeer(t, d.SD(2))
	p.subscribe(d, o, p.Addr())
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	require.NoError(t, o.Notify(event, make([]byte, 5000)))
	require.NoError(t, o.Notify(event, make([]byte, 5000)))
	require.NoError(t, stack.Close())
}

func BenchmarkSegmentedCall(b *testing.B) {
	for _, size := range []int{5000, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			d := someiptest.NewDomain(b)
			there, here := d.Start(1), d.Start(2)
			deploy(b, segmented(tp.Rule{}), there, here)
			offer(b, there, newServer())
			c := client(b, here)
			available(b, c, true)
			payload := bytes.Repeat([]byte("x"), size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Call(b.Context(), echo, false, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Messages of a deployment that lets them wait share datagrams up to 1416 bytes,
// both ways (2.1), and are not lost when the stack ends.
func TestMessagesShareDatagrams(t *testing.T) {
	d := someiptest.NewDomain(t)
	stack := d.StartStack(1)
	n := stack.Network("lan")
	wait := map[uint16]runtime.MessageConfig{echo: {Retention: time.Hour}, event: {Retention: time.Hour}}
	deploy(t, runtime.Deployment{Instance: key, Responses: wait, Events: wait}, n)
	o := offer(t, n, newServer())
	p, client := newPeer(t, d.SD(2)), newPeer(t, d.AddrPort(2, 0))
	p.subscribe(d, o, client.Addr())
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	require.NoError(t, o.Notify(event, make([]byte, 500)))
	client.Send(o.Endpoints().UDP, request(echo, 1, large(500)).Append(nil))
	client.Send(o.Endpoints().UDP, request(echo, 2, large(500)).Append(nil)) // has no room
	both, _ := client.Receive()
	require.Len(t, both, 2)
	require.EqualValues(t, event, both[0].Method)
	require.EqualValues(t, 1, both[1].Session)
	require.NoError(t, stack.Close())
	require.EqualValues(t, 2, client.next().Session)
}
