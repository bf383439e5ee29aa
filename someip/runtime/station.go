package runtime

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// track is the way that a datagram takes.
type track struct {
	socket endpoint.PacketSocket
	to     netip.AddrPort
}

// station is where messages on a track wait. It stays for a while when there are
// none. The lock of its trains guards it.
type station struct {
	track
	queue   []*train             // in the order in which they leave
	spare   []*train             // for reuse
	waiting int                  // bytes
	left    map[uint16]time.Time // when another message of a method may leave
	idle    time.Time            // since when nothing waits
	timer   *time.Timer
	armed   time.Time // when it goes off; zero: it went off
	listed  bool      // among those that are ready

	// Who sends lets go of the lock; gone and out are its meanwhile.
	sending bool
	room    sync.Cond // it has sent
	gone    []*train
	out     []endpoint.Datagram
}

// train is a datagram that still waits.
type train struct {
	buf      *[]byte
	aboard   []passenger // of the methods that have a debounce time
	departs  time.Time
	earliest time.Time // for the debounce times
	eager    bool      // it leaves before when nothing else is ready
}

type passenger struct {
	id       uint16
	debounce time.Duration
}

// board puts a message on the last train, or on a new one behind it.
func (s *station) board(now time.Time, t *traits, b []byte) {
	id := uint16(b[2])<<8 | uint16(b[3])
	last := s.lastTrain()
	full := last != nil && last.full(id, len(b), t.debounce)
	if full && !t.collect {
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
	last.eager = last.eager || t.collect
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

// letGo makes due what waits for company only, and what is before it.
func (s *station) letGo(now time.Time) {
	for i := len(s.queue) - 1; i >= 0; i-- {
		if !s.queue[i].eager {
			continue
		}
		for _, t := range s.queue[:i+1] {
			t.departs = later(now, t.earliest)
		}
		return
	}
}

// take takes the trains that are due off the queue, and reports whether there are any.
func (s *station) take(now time.Time) bool {
	n := 0
	for n < len(s.queue) && n < maxTrains && !s.queue[n].departs.After(now) {
		t := s.queue[n]
		for _, p := range t.aboard {
			s.left[p.id] = now.Add(p.debounce)
		}
		s.waiting -= len(*t.buf)
		s.gone = append(s.gone, t)
		s.out = append(s.out, endpoint.Datagram{To: s.to, Data: *t.buf})
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	return n > 0
}

// hand sends what was taken, and returns how many datagrams left.
func (s *station) hand() (sent int, err error) {
	if len(s.out) > 1 {
		return s.socket.SendBatch(s.out)
	}
	if err := s.socket.Send(s.to, s.out[0].Data); err != nil {
		return 0, err
	}
	return 1, nil
}

// recycle keeps what was sent for reuse.
func (s *station) recycle() {
	for _, t := range s.gone {
		release(t.buf)
		t.buf = nil
	}
	s.spare = append(s.spare, s.gone...)
	clear(s.gone)
	clear(s.out)
	s.gone, s.out = s.gone[:0], s.out[:0]
}

// arm has the timer go off at a time, or before.
func (s *station) arm(at, now time.Time) {
	if s.armed.IsZero() || at.Before(s.armed) {
		s.armed = at
		s.timer.Reset(at.Sub(now))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
