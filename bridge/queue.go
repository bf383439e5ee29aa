package bridge

import (
	"context"
	"math"
	"sync"
)

// Delivery is the policy of a bounded queue that is full.
type Delivery uint8

// The delivery policies.
const (
	// DropOldest drops the oldest item: for events.
	DropOldest Delivery = iota
	// KeepLatest keeps only the newest item: for fields.
	KeepLatest
)

// EventQueueSize is how many events wait for a slow watcher: those of 10 ms where
// 200 000 come a second, so that nothing is lost because some goroutine had to wait
// for a core.
const EventQueueSize = 2048

// maxQueuedBytes bounds the payloads that wait for one watcher, unless one alone has
// more.
const maxQueuedBytes = 1 << 20

// Queue is the bounded queue between a [Service.Watch] and one slow watcher.
// Each item lost is counted into the gap of the next. One goroutine takes the
// items; Push and Close may be called from any.
type Queue struct {
	delivery Delivery

	mu      sync.Mutex
	ring    []Item // grows up to limit
	head, n int
	limit   int
	bytes   int    // of the payloads
	gap     uint32 // lost since the item taken last
	dropped uint64
	err     error
	closed  bool

	wake chan struct{}
}

// NewQueue returns an empty queue for the watcher of one event.
func NewQueue(delivery Delivery, size int) *Queue {
	if delivery == KeepLatest {
		size = 1
	}
	return &Queue{delivery: delivery, limit: size, wake: make(chan struct{}, 1)}
}

// Push adds an item, never blocks, and does nothing once the queue is closed. It
// returns how many items were lost for it.
func (q *Queue) Push(it Item) (lost uint64) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return 0
	}
	for q.n == q.limit || q.n > 0 && q.bytes+len(it.Payload) > maxQueuedBytes {
		old := q.oldest()
		lost++
		q.gap = addGap(q.gap, addGap(old.Gap, 1)) // what was lost before it stays counted
		// What takes the place of a field's current value is it now.
		it.Initial = it.Initial || q.delivery == KeepLatest && old.Initial
	}
	q.dropped += lost
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)%len(q.ring)] = it
	q.n++
	q.bytes += len(it.Payload)
	q.mu.Unlock()
	q.signal()
	return lost
}

// oldest takes the oldest item out of the ring.
func (q *Queue) oldest() Item {
	it := q.ring[q.head]
	q.ring[q.head] = Item{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	q.bytes -= len(it.Payload)
	return it
}

func (q *Queue) grow() {
	ring := make([]Item, min(max(2*len(q.ring), 1), q.limit))
	for i := range q.n {
		ring[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = ring, 0
}

// Close ends the queue: Pop returns what is left in it, then err, which must
// not be nil.
func (q *Queue) Close(err error) {
	q.mu.Lock()
	if !q.closed {
		q.closed, q.err = true, err
	}
	q.mu.Unlock()
	q.signal()
}

// Pop takes the oldest item and waits for one where there is none. It returns
// the cause of ctx when that ends.
func (q *Queue) Pop(ctx context.Context) (Item, error) {
	for {
		if it, ok, err := q.take(); ok || err != nil {
			return it, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return Item{}, context.Cause(ctx)
		}
	}
}

func (q *Queue) take() (it Item, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		if q.closed {
			return Item{}, false, q.err
		}
		return Item{}, false, nil
	}
	it = q.oldest()
	it.Gap = addGap(it.Gap, q.gap)
	q.gap = 0
	return it, true, nil
}

// Dropped returns how many items were lost in all.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func addGap(a, b uint32) uint32 {
	if a > math.MaxUint32-b {
		return math.MaxUint32
	}
	return a + b
}
