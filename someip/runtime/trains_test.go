package runtime

import (
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// recorder is a socket that notes what is sent, and when.
type recorder struct {
	endpoint.PacketSocket

	start time.Time
	log   []string
}

func (r *recorder) Send(_ netip.AddrPort, b []byte) error {
	var methods []string
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil {
			return err
		}
		methods = append(methods, string(rune(m.Method)))
		b = rest
	}
	r.log = append(r.log, time.Since(r.start).String()+" "+strings.Join(methods, ""))
	return nil
}

func (r *recorder) SendBatch(batch []endpoint.Datagram) (int, error) {
	for _, d := range batch {
		if err := r.Send(d.To, d.Data); err != nil {
			return 0, err
		}
	}
	return len(batch), nil
}

// boarding is a message that is sent some time after the one before.
type boarding struct {
	wait                time.Duration
	id                  rune
	debounce, retention time.Duration
	size                int
}

func travel(t *testing.T, script ...boarding) []string {
	t.Helper()
	var log []string
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{start: time.Now()}
		var ts trains
		ts.init(new(atomic.Uint64))
		for _, s := range script {
			time.Sleep(s.wait) // of the fake clock
			m := someip.NewNotification(1, uint16(s.id), 1, 1, make([]byte, s.size))
			tr := track{r, netip.AddrPort{}}
			require.NoError(t, ts.send(tr, &traits{debounce: s.debounce, retention: s.retention}, time.Now(), m.Append(nil)))
		}
		time.Sleep(2 * linger)
		ts.mu.Lock()
		require.Empty(t, ts.stations)
		ts.mu.Unlock()
		ts.close()
		log = r.log
	})
	return log
}

const ms = time.Millisecond

func TestTrains(t *testing.T) {
	for name, c := range map[string]struct {
		script []boarding
		want   []string
	}{
		"the first deadline counts": {
			[]boarding{{id: 'a', retention: 5 * ms}, {wait: ms, id: 'b', retention: 2 * ms}, {wait: ms, id: 'c', retention: 9 * ms}},
			[]string{"3ms abc"},
		},
		"alone it still waits": {
			[]boarding{{id: 'a', retention: 5 * ms}, {wait: 6 * ms, id: 'b', retention: 5 * ms}},
			[]string{"5ms a", "11ms b"},
		},
		"no retention takes those along that wait": {
			[]boarding{{id: 'a', retention: 5 * ms}, {wait: ms, id: 'b', debounce: ms}},
			[]string{"1ms ab"},
		},
		"one method without debounce shares a datagram with itself": {
			[]boarding{{id: 'a', retention: 5 * ms}, {id: 'a', retention: 5 * ms}},
			[]string{"5ms aa"},
		},
		"one with it does not, and keeps its distance": {
			[]boarding{{id: 'a', debounce: 2 * ms, retention: 5 * ms}, {wait: ms, id: 'a', debounce: 2 * ms, retention: 5 * ms}},
			[]string{"1ms a", "6ms a"},
		},
		"the distance counts from the departure": {
			[]boarding{{id: 'a', debounce: 10 * ms}, {wait: ms, id: 'a', debounce: 10 * ms}, {wait: ms, id: 'a', debounce: 10 * ms}},
			[]string{"0s a", "10ms a", "20ms a"},
		},
		"the distance counts for the method only": {
			[]boarding{{id: 'a', debounce: 10 * ms}, {wait: ms, id: 'a', debounce: 10 * ms}, {wait: ms, id: 'b', retention: 3 * ms}},
			[]string{"0s a", "10ms ab"},
		},
		"a full datagram leaves": {
			[]boarding{{id: 'a', retention: 5 * ms, size: 700}, {wait: ms, id: 'b', retention: 5 * ms, size: 700}},
			[]string{"1ms a", "6ms b"},
		},
		"1416 bytes fit": {
			[]boarding{{id: 'a', retention: 5 * ms, size: 692}, {id: 'b', retention: 5 * ms, size: 692}},
			[]string{"5ms ab"},
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, travel(t, c.script...)) })
	}
}

func TestTrainsAreBounded(t *testing.T) {
	r := &recorder{}
	var ts trains
	ts.init(new(atomic.Uint64))
	defer ts.close()
	b := someip.NewNotification(1, 'a', 1, 1, make([]byte, 1400)).Append(nil)
	tr := track{r, netip.AddrPort{}}
	hour := &traits{debounce: time.Hour}
	n := 0
	for ; ts.send(tr, hour, time.Now(), b) == nil; n++ {
	}
	require.Equal(t, 1+maxAtStation/len(b), n)
	require.ErrorIs(t, ts.send(tr, hour, time.Now(), b), endpoint.ErrQueueFull)
	ts.close()
	require.Len(t, r.log, n, "what waits is not lost at the end")
	require.ErrorIs(t, ts.send(tr, hour, time.Now(), b), net.ErrClosed)
}

func TestTrainsDoNotAllocate(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: netip.MustParseAddrPort("127.0.0.1:0")})
	require.NoError(t, err)
	defer u.Close()
	var ts trains
	ts.init(new(atomic.Uint64))
	defer ts.close()
	b := someip.NewNotification(1, 'a', 1, 1, make([]byte, 700)).Append(nil)
	tr := track{u, u.LocalAddr()}
	hour := &traits{retention: time.Hour}
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() { _ = ts.send(tr, hour, time.Now(), b) }), 0.1)
}

// What is ready together leaves together, without a timer.
func TestTrainsOfWhatIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{start: time.Now()}
		var ts trains
		ts.init(new(atomic.Uint64))
		tr := track{r, netip.AddrPort{}}
		send := func(id rune, size int, traits traits) {
			m := someip.NewNotification(1, uint16(id), 1, 1, make([]byte, size))
			require.NoError(t, ts.send(tr, &traits, time.Now(), m.Append(nil)))
		}
		eager := traits{collect: true, retention: DefaultCollect}

		ts.begin()
		send('a', 0, eager)
		send('b', 0, traits{retention: time.Minute})
		send('c', 1400, eager)
		require.Empty(t, r.log, "a receiver has more")
		ts.end()
		require.Equal(t, []string{"0s ab", "0s c"}, r.log)

		r.log = nil
		ts.begin() // it does not end
		send('d', 0, eager)
		time.Sleep(2 * DefaultCollect)
		synctest.Wait()
		require.Equal(t, []string{"1ms d"}, r.log)

		r.log = nil
		for range maxTrains {
			send('e', 1400, eager)
		}
		require.Len(t, r.log, maxTrains, "more do not wait")
		ts.begin()
		ts.end()
		ts.end()

		r.log, r.start = nil, time.Now()
		var flusher sync.WaitGroup
		flusher.Go(ts.run)
		send('f', 0, eager)
		send('g', 0, eager)
		synctest.Wait()
		ts.close()
		flusher.Wait()
		require.NotContains(t, strings.Join(r.log, " "), "ms")
		require.Contains(t, strings.Join(r.log, " "), "g")
	})
}

// blocker is a socket that holds datagrams up.
type blocker struct {
	endpoint.PacketSocket

	in, out chan struct{}
	sent    atomic.Int64
}

func (b *blocker) Send(netip.AddrPort, []byte) error {
	b.in <- struct{}{}
	<-b.out
	b.sent.Add(1)
	return nil
}

func (b *blocker) SendBatch(batch []endpoint.Datagram) (int, error) {
	b.in <- struct{}{}
	<-b.out
	b.sent.Add(int64(len(batch)))
	return len(batch), nil
}

// Who sends more than the socket takes waits, and loses nothing.
func TestTrainsHoldTheSenderUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocker{in: make(chan struct{}, 100), out: make(chan struct{})}
		var ts trains
		ts.init(new(atomic.Uint64))
		m := someip.NewNotification(1, 'a', 1, 1, make([]byte, 1400)).Append(nil)
		const total = 3 * maxTrains
		done := false
		var sender sync.WaitGroup
		sender.Go(func() {
			for range total {
				require.NoError(t, ts.send(track{b, netip.AddrPort{}}, &traits{collect: true, retention: DefaultCollect}, time.Now(), m))
			}
			done = true
		})
		synctest.Wait()
		require.Len(t, b.in, 1)
		require.False(t, done)
		close(b.out)
		sender.Wait()
		ts.close()
		require.EqualValues(t, total, b.sent.Load())
	})
}

// broken is a socket that sends every other datagram only.
type broken struct{ endpoint.PacketSocket }

func (broken) Send(netip.AddrPort, []byte) error { return net.ErrClosed }

func (broken) SendBatch(batch []endpoint.Datagram) (int, error) {
	return len(batch) / 2, net.ErrClosed
}

// Each datagram that does not leave is counted once: by the trains, or by the sender who
// is told of it.
func TestTrainsCountWhatIsLost(t *testing.T) {
	var lost atomic.Uint64
	var ts trains
	ts.init(&lost)
	eager := &traits{collect: true, retention: time.Hour}
	m := someip.NewNotification(1, 'a', 1, 1, make([]byte, 1400)).Append(nil)
	send := func() error { return ts.send(track{broken{}, netip.AddrPort{}}, eager, time.Now(), m) }
	for range maxTrains - 1 {
		require.NoError(t, send())
	}
	require.ErrorIs(t, send(), net.ErrClosed)
	require.EqualValues(t, maxTrains/2-1, lost.Swap(0))
	for range 4 {
		require.NoError(t, send())
	}
	ts.flush()
	require.EqualValues(t, 2, lost.Swap(0))
	require.NoError(t, send())
	ts.close()
	require.EqualValues(t, 1, lost.Load())
}
