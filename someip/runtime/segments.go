package runtime

import (
	"net/netip"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

// reassembly puts together the segments that reach any socket of a network.
type reassembly struct {
	mu    sync.Mutex
	tp    *tp.Reassembler
	limit int // of the segment at hand
}

func (r *reassembly) init(c tp.Config) {
	c.Limit = func(someip.Header) int { return r.limit }
	r.tp = tp.NewReassembler(c)
}

// segment takes a segment of a message that is configured for TP. If it was the
// last that was missing it returns the whole message in a buffer, to be given to
// release afterwards.
func (n *Network) segment(path tp.Path, m someip.Message, t *traits) *[]byte {
	r := &n.segments
	r.mu.Lock()
	r.limit = t.maxPayload
	_, waiting := r.tp.Next()
	whole, err := r.tp.Receive(n.now(), path, m)
	var b *[]byte
	if err == nil && whole != nil {
		// The reassembler goes on with its buffer, the handler may take its time.
		b = buffers.Get().(*[]byte)
		*b = append((*b)[:0], whole...)
	}
	_, waits := r.tp.Next()
	r.mu.Unlock()
	if waits && !waiting {
		n.wake()
	}
	return b
}

// next returns when the reassembler has something to do.
func (r *reassembly) next() (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tp.Next()
}

func (r *reassembly) tick(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tp.Tick(now)
}

// forget drops what a host that restarted had begun: its sessions begin anew.
func (r *reassembly) forget(now time.Time, host netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tp.Forget(now, host)
}

// TPStats returns a snapshot of the counters of reassembly. Segments of messages
// that are not configured for TP are in [Stats.Segments] only.
func (n *Network) TPStats() tp.Stats {
	n.segments.mu.Lock()
	defer n.segments.mu.Unlock()
	return n.segments.tp.Stats()
}
