package runtime

import "sync"

// queue lets notifications wait for a consumer that takes its time. When it is full
// the oldest goes, of an event that came again if there is one: so the newest value
// of each field stays. How many went is told with the next one.
type queue struct {
	s    *Subscription
	most int

	mu      sync.Mutex
	waiting []Notification // their payloads are copies
	spare   [][]byte       // for reuse
	gap     uint32
	busy    bool // a goroutine delivers
}

// put queues a notification. It never blocks.
func (q *queue) put(n Notification) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.most {
		q.drop()
	}
	var b []byte
	if last := len(q.spare) - 1; last >= 0 {
		b, q.spare = q.spare[last], q.spare[:last]
	}
	n.Payload = append(b[:0], n.Payload...)
	q.waiting = append(q.waiting, n)
	if !q.busy {
		q.busy = true
		go q.run()
	}
}

// drop makes room. q.mu is held.
func (q *queue) drop() {
	victim := 0
search:
	for i := range q.waiting {
		for _, later := range q.waiting[i+1:] {
			if later.Event == q.waiting[i].Event {
				victim = i
				break search
			}
		}
	}
	old := q.waiting[victim]
	q.waiting = append(q.waiting[:victim], q.waiting[victim+1:]...)
	if old.Initial { // so is what takes its place
		for i := range q.waiting[victim:] {
			if n := &q.waiting[victim+i]; n.Event == old.Event {
				n.Initial = true
				break
			}
		}
	}
	q.spare = append(q.spare, old.Payload)
	q.gap++
	q.s.up.n.stats.queueDropped.Add(1)
}

// run delivers until nothing waits.
func (q *queue) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 || q.s.closed.Load() {
			q.busy = false
			q.mu.Unlock()
			return
		}
		n := q.waiting[0]
		q.waiting = append(q.waiting[:0], q.waiting[1:]...)
		n.Gap, q.gap = q.gap, 0
		q.mu.Unlock()

		q.s.cfg.OnEvent(n)

		q.mu.Lock()
		if len(q.spare) < q.most && cap(n.Payload) <= keepBuffer {
			q.spare = append(q.spare, n.Payload)
		}
		q.mu.Unlock()
	}
}
