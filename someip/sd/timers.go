package sd

import "time"

// timer calls fire when its time has come. The zero timer with a fire function
// is stopped.
type timer struct {
	at   time.Time
	seq  uint64 // when it was set: decides between equal times
	pos  int    // position in the heap, from 1; 0: stopped
	fire func(now time.Time)
}

func (t *timer) armed() bool { return t.pos > 0 }

// timers is a binary heap by time, so that thousands of lifetimes cost a few
// comparisons for each renewal and nothing while they run.
type timers struct {
	heap []*timer
	seq  uint64
}

// set starts t, or moves it.
func (s *timers) set(t *timer, at time.Time) {
	s.seq++
	t.at, t.seq = at, s.seq
	if t.pos == 0 {
		s.heap = append(s.heap, t)
		t.pos = len(s.heap)
	}
	s.down(s.up(t.pos - 1))
}

func (s *timers) stop(t *timer) {
	if t.pos == 0 {
		return
	}
	i, last := t.pos-1, len(s.heap)-1
	s.swap(i, last)
	s.heap[last] = nil
	s.heap = s.heap[:last]
	t.pos = 0
	if i < last {
		s.down(s.up(i))
	}
}

func (s *timers) next() (time.Time, bool) {
	if len(s.heap) == 0 {
		return time.Time{}, false
	}
	return s.heap[0].at, true
}

// run fires what is due, the earliest first. A fired timer is stopped unless its
// function sets it again.
func (s *timers) run(now time.Time) {
	for len(s.heap) > 0 && !s.heap[0].at.After(now) {
		t := s.heap[0]
		s.stop(t)
		t.fire(now)
	}
}

func (s *timers) up(i int) int {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.less(i, parent) {
			break
		}
		s.swap(i, parent)
		i = parent
	}
	return i
}

func (s *timers) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		s.swap(i, least)
		i = least
	}
}

// less orders by time, and what is due at once as it was set.
func (s *timers) less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}

func (s *timers) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].pos, s.heap[j].pos = i+1, j+1
}
