package runtime

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

// trains collect messages to the same peer, so that several share a datagram (2.1)
// and several datagrams a system call.
type trains struct {
	lost *atomic.Uint64 // datagrams whose senders had been told that they wait
	used atomic.Bool    // there are messages that leave when nothing else is ready
	wake chan struct{}  // has one when such a message waits, for run

	mu       sync.Mutex
	stations map[track]*station
	ready    []*station // where such messages wait
	batches  int        // receivers that hand over what came together
	closed   bool
}

// linger is how long a station stays unused.
const linger = 10 * time.Second

// maxAtStation bounds what waits for one peer, in bytes.
const maxAtStation = 1 << 20

// maxTrains is how many datagrams wait for company, and leave with one call.
const maxTrains = 32

func (ts *trains) init(lost *atomic.Uint64) {
	ts.lost, ts.stations, ts.wake = lost, make(map[track]*station), make(chan struct{}, 1)
}

// send sends the message b, now or within its retention time. It fails with
// [endpoint.ErrQueueFull] when too much waits. It does not keep b.
func (ts *trains) send(tr track, t *traits, now time.Time, b []byte) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	s, err := ts.station(tr)
	if err != nil {
		return err
	}
	for t.collect && s.sending && len(s.queue) >= maxTrains { // as a full socket buffer does
		s.room.Wait()
	}
	switch {
	case ts.closed:
		return net.ErrClosed
	case s.waiting+len(b) > maxAtStation:
		return endpoint.ErrQueueFull
	}
	s.board(now, t, b)
	switch {
	case !t.collect:
	case len(s.queue) >= maxTrains:
		s.letGo(now)
	default:
		ts.expect(s, now)
		return nil
	}
	lost, err := ts.depart(s, now)
	ts.lost.Add(uint64(max(lost-1, 0))) // the caller counts the error
	return err
}

// station returns that of a track, new if need be. ts.mu is held, as for all below
// that do not take it.
func (ts *trains) station(tr track) (*station, error) {
	if ts.closed {
		return nil, net.ErrClosed
	}
	s := ts.stations[tr]
	if s == nil {
		s = &station{track: tr, left: make(map[uint16]time.Time)}
		s.room.L = &ts.mu
		s.timer = time.AfterFunc(time.Hour, func() { ts.due(s) })
		ts.stations[tr] = s
	}
	return s, nil
}

// expect has what waits at s leave when nothing else is ready: at the end of what
// a receiver hands over, or when the goroutines that can run now have run.
func (ts *trains) expect(s *station, now time.Time) {
	if !s.listed {
		s.listed = true
		ts.ready = append(ts.ready, s)
		if ts.batches == 0 {
			select {
			case ts.wake <- struct{}{}:
			default:
			}
		}
	}
	s.arm(s.queue[0].departs, now)
}

// depart sends what is due and has the timer look for the next. It lets go of
// ts.mu while it sends. It returns how many datagrams were lost, and the first error.
func (ts *trains) depart(s *station, now time.Time) (lost int, err error) {
	for s.sending {
		s.room.Wait()
	}
	s.sending = true
	for s.take(now) {
		ts.mu.Unlock()
		sent, e := s.hand()
		ts.mu.Lock()
		lost += len(s.out) - sent
		s.recycle()
		if err == nil {
			err = e
		}
	}
	s.sending = false
	s.room.Broadcast()
	switch {
	case ts.closed:
	case len(s.queue) > 0:
		s.arm(s.queue[0].departs, now)
	default:
		s.idle = now
		s.arm(now.Add(linger), now)
	}
	return lost, err
}

// due is called by the timer of a station.
func (ts *trains) due(s *station) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	s.armed = time.Time{}
	switch {
	case ts.closed || ts.stations[s.track] != s:
	case len(s.queue) == 0 && !s.sending && now.Sub(s.idle) >= linger:
		ts.leave(s, now)
	case len(s.queue) == 0:
		s.arm(s.idle.Add(linger), now)
	default:
		ts.dispatch(s, now)
	}
}

// leave ends a station that is not used any more.
func (ts *trains) leave(s *station, now time.Time) {
	for _, next := range s.left {
		if next.After(now) {
			s.arm(next, now)
			return
		}
	}
	delete(ts.stations, s.track)
}

// dispatch departs, and counts what whoever sent it is not told of.
func (ts *trains) dispatch(s *station, now time.Time) {
	lost, _ := ts.depart(s, now)
	ts.lost.Add(uint64(lost))
}

// flush lets go what waits for company only.
func (ts *trains) flush() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	for n := len(ts.ready); n > 0 && len(ts.ready) > 0; n-- {
		last := len(ts.ready) - 1
		s := ts.ready[last]
		ts.ready = ts.ready[:last]
		s.listed = false
		s.letGo(now)
		ts.dispatch(s, now)
	}
}

// run flushes whenever something waits, once all other goroutines that are ready had
// their turn, until close.
func (ts *trains) run() {
	for range ts.wake {
		runtime.Gosched()
		ts.flush()
	}
}

// begin and end enclose what a receiver hands over of what came together. The
// goroutines that it woke have their turn before what was sent meanwhile leaves.
func (ts *trains) begin() {
	ts.mu.Lock()
	ts.batches++
	ts.mu.Unlock()
}

func (ts *trains) end() {
	runtime.Gosched()
	ts.mu.Lock()
	ts.batches--
	last := ts.batches == 0
	ts.mu.Unlock()
	if last {
		ts.flush()
	}
}

// close sends what waits.
func (ts *trains) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return
	}
	ts.closed = true
	close(ts.wake)
	for _, s := range ts.stations {
		s.timer.Stop()
		for _, t := range s.queue {
			t.departs = time.Time{}
		}
		ts.dispatch(s, time.Now())
	}
	clear(ts.stations)
}
