package runtime

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// trains collect messages to the same peer, so that several share a datagram (2.1).
type trains struct {
	mu       sync.Mutex
	stations map[track]*station
	closed   bool
}

// track is the way that a datagram takes.
type track struct {
	socket endpoint.PacketSocket
	to     netip.AddrPort
}

// station is where messages on a track wait. It stays for a while when there are
// none.
type station struct {
	track
	queue   []*train             // in the order in which they leave
	spare   []*train             // for reuse
	waiting int                  // bytes
	left    map[uint16]time.Time // when another message of a method may leave
	idle    time.Time            // since when nothing waits
	timer   *time.Timer
}

// train is a datagram that still waits.
type train struct {
	buf      *[]byte
	aboard   []passenger // of the methods that have a debounce time
	departs  time.Time
	earliest time.Time // for the debounce times
}

type passenger struct {
	id       uint16
	debounce time.Duration
}

// linger is how long a station stays unused.
const linger = 10 * time.Second

// maxAtStation bounds what waits for one peer, in bytes.
const maxAtStation = 1 << 20

func (ts *trains) init() { ts.stations = make(map[track]*station) }

// send sends the message b, now or within its retention time. It fails with
// [endpoint.ErrQueueFull] when too much waits. It does not keep b.
func (ts *trains) send(tr track, t *traits, now time.Time, b []byte) error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return net.ErrClosed
	}
	s := ts.stations[tr]
	if s == nil {
		s = &station{track: tr, left: make(map[uint16]time.Time)}
		s.timer = time.AfterFunc(time.Hour, func() { ts.due(s) })
		ts.stations[tr] = s
	}
	if s.waiting+len(b) > maxAtStation {
		return endpoint.ErrQueueFull
	}
	s.board(now, t, b)
	return ts.depart(s, now)
}

// board puts a message on the last train, or on a new one behind it.
func (s *station) board(now time.Time, t *traits, b []byte) {
	id := uint16(b[2])<<8 | uint16(b[3])
	last := s.lastTrain()
	full := last != nil && last.full(id, len(b), t.debounce)
	if full {
		last.departs = later(now, last.earliest) // nothing more to wait for
	}
	earliest := now
	if t.debounce > 0 {
		earliest = later(now, s.nextOf(id))
	}
	latest := later(now.Add(t.retention), earliest)
	switch {
	case last == nil:
		last = s.newTrain(latest)
	case full:
		last = s.newTrain(later(latest, last.departs))
	case last.departs.Before(earliest):
		last = s.newTrain(latest)
	case latest.Before(last.departs):
		last.departs = latest
	}
	last.earliest = later(last.earliest, earliest)
	last.departs = later(last.departs, last.earliest)
	if t.debounce > 0 {
		last.aboard = append(last.aboard, passenger{id, t.debounce})
	}
	*last.buf = append(*last.buf, b...)
	s.waiting += len(b)
}

// nextOf returns when the next message of a method may leave.
func (s *station) nextOf(id uint16) time.Time {
	for i := len(s.queue) - 1; i >= 0; i-- {
		for _, p := range s.queue[i].aboard {
			if p.id == id {
				return s.queue[i].departs.Add(p.debounce)
			}
		}
	}
	return s.left[id]
}

func (s *station) lastTrain() *train {
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[len(s.queue)-1]
}

func (s *station) newTrain(departs time.Time) *train {
	var t *train
	if n := len(s.spare); n > 0 {
		t, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		t = new(train)
	}
	*t = train{buf: buffers.Get().(*[]byte), aboard: t.aboard[:0], departs: departs}
	*t.buf = (*t.buf)[:0]
	s.queue = append(s.queue, t)
	return t
}

// full reports whether a message has no place: in the datagram (UDP-3), or because
// one of its method, which keeps a distance, is there.
func (t *train) full(id uint16, size int, debounce time.Duration) bool {
	return len(*t.buf)+size > someip.MaxUDPDatagram ||
		debounce > 0 && slices.ContainsFunc(t.aboard, func(p passenger) bool { return p.id == id })
}

// depart sends what is due and has the timer look for the next. ts.mu is held.
func (ts *trains) depart(s *station, now time.Time) (err error) {
	for len(s.queue) > 0 && !s.queue[0].departs.After(now) {
		t := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		if serr := s.socket.Send(s.to, *t.buf); err == nil {
			err = serr
		}
		for _, p := range t.aboard {
			s.left[p.id] = now.Add(p.debounce)
		}
		s.waiting -= len(*t.buf)
		release(t.buf)
		s.spare = append(s.spare, t)
	}
	if len(s.queue) > 0 {
		s.timer.Reset(s.queue[0].departs.Sub(now))
	} else {
		s.idle = now
		s.timer.Reset(linger)
	}
	return err
}

// leave ends a station that is not used any more. ts.mu is held.
func (ts *trains) leave(s *station, now time.Time) {
	for _, next := range s.left {
		if next.After(now) {
			s.timer.Reset(next.Sub(now))
			return
		}
	}
	delete(ts.stations, s.track)
}

func (ts *trains) due(s *station) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	switch {
	case ts.closed || ts.stations[s.track] != s:
	case len(s.queue) == 0 && now.Sub(s.idle) >= linger:
		ts.leave(s, now)
	default:
		_ = ts.depart(s, now) // whoever sent it was told that it waits
	}
}

// close sends what waits.
func (ts *trains) close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	for _, s := range ts.stations {
		s.timer.Stop()
		for _, t := range s.queue {
			_ = s.socket.Send(s.to, *t.buf)
			release(t.buf)
		}
	}
	clear(ts.stations)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
