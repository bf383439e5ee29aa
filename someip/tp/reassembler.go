package tp

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// Reassembler puts segmented messages together. It must not be used concurrently.
// The times that it is given must not go backwards.
type Reassembler struct {
	cfg      Config
	open     map[key]*assembly
	peers    map[netip.Addr]*peer
	queue    queue
	bytes    int // memory of what is open
	finished finished
	stats    Stats

	delivered  *assembly   // its bytes were returned by the last Receive
	spare      []*assembly // for reuse
	spareBytes int
	sparePeers []*peer
}

// What is kept for reuse: so many of each, and assemblies of so many bytes in all.
const (
	maxSpare      = 16
	maxSpareBytes = 1 << 20
)

// NewReassembler returns an empty Reassembler.
func NewReassembler(c Config) *Reassembler {
	return &Reassembler{cfg: c.withDefaults(), open: map[key]*assembly{}, peers: map[netip.Addr]*peer{}}
}

// Receive takes a segment and returns the whole message if it was the last one
// that was missing, else nil. The message is as if it had come in one datagram
// (TP-6) and is valid until the next call of any method.
//
// The header of the segment was judged by someip.Header.Validate before. If the
// segment is dropped the error is a *DiscardError; the other messages of the
// datagram are not concerned (TP-10).
func (r *Reassembler) Receive(now time.Time, path Path, segment someip.Message) ([]byte, error) {
	r.release()
	r.stats.Segments++
	if !segment.Type.TP() || segment.Service == someip.ServiceSD {
		return nil, r.drop(NotAllowed, 0)
	}
	limit := r.limit(segment.Header)
	if limit <= 0 {
		return nil, r.drop(NotAllowed, 0)
	}

	k := keyOf(path, segment.Header)
	a := r.open[k]
	h, err := ParseHeader(segment.Payload)
	if err != nil {
		return nil, r.reject(now, k, segment.Session, a, Malformed, 0)
	}
	data := segment.Payload[HeaderSize:]
	switch {
	case len(data) == 0 || h.More && len(data)%unit != 0:
		return nil, r.reject(now, k, segment.Session, a, Malformed, h.Offset)
	case uint64(h.Offset)+uint64(len(data)) > uint64(limit):
		return nil, r.reject(now, k, segment.Session, a, TooLong, h.Offset)
	}

	a, ok := r.find(now, k, a, segment.Session, h.Offset == 0)
	if !ok {
		return nil, r.drop(Stray, h.Offset)
	}
	if a == nil {
		a = r.start(now, k, segment.Header)
	}
	return r.take(now, a, h, segment.Code, data)
}

// find returns the message that a segment belongs to, nil if it begins one, and
// false if it does neither. The first segment always begins a message, unless
// others of the same session came ahead of it (TP-5, case 28).
func (r *Reassembler) find(now time.Time, k key, a *assembly, session uint16, first bool) (*assembly, bool) {
	if a != nil && a.session == session {
		if first && a.begun() {
			r.cancel(now, a, Restarted)
			return nil, true
		}
		return a, true
	}
	if !first && (session == 0 || r.finished.has(k, session, now)) {
		return nil, false
	}
	if a != nil {
		r.cancel(now, a, Superseded)
	}
	return nil, true
}

// take adds a segment to a message.
func (r *Reassembler) take(now time.Time, a *assembly, h Header, code someip.ReturnCode, data []byte) ([]byte, error) {
	at, session := int(h.Offset), a.session
	reject := func(reason Reason) ([]byte, error) {
		return nil, r.reject(now, a.key, session, a, reason, h.Offset)
	}
	wasEnded := a.ended
	if !a.bound(at, len(data), h.More) {
		return reject(EndMismatch)
	}
	if !h.More && !wasEnded {
		a.header.Code = code
	}
	before := a.memory()
	added := a.add(at, data)
	r.account(a, a.memory()-before)
	switch {
	case added < len(data) && (r.cfg.CancelOverlap || session == 0):
		return reject(Overlap)
	case added == 0:
		return nil, r.drop(Duplicate, h.Offset)
	case a.complete():
		r.stats.Completed++
		r.remove(a)
		r.finished.add(a.key, session, now.Add(r.cfg.Timeout))
		r.delivered = a
		return a.message(), nil
	case len(a.ahead) > r.cfg.Reorder, a.ended && session == 0:
		return reject(Gap)
	}
	r.queue.remove(a)
	a.deadline = now.Add(r.cfg.Timeout)
	r.queue.push(a)
	if !r.shrink(now, a) {
		return reject(Evicted)
	}
	return nil, nil
}

// Tick cancels the messages whose time is over and returns their number.
func (r *Reassembler) Tick(now time.Time) int {
	r.release()
	n := 0
	for a := r.queue.front; a != nil && !a.deadline.After(now); a = r.queue.front {
		r.cancel(now, a, TimedOut)
		n++
	}
	return n
}

// Next returns when Tick is to be called next, false if nothing is under way.
func (r *Reassembler) Next() (time.Time, bool) {
	if r.queue.front == nil {
		return time.Time{}, false
	}
	return r.queue.front.deadline, true
}

// Forget throws away what came from an address, because the peer restarted: its
// sessions begin again.
func (r *Reassembler) Forget(now time.Time, from netip.Addr) {
	r.release()
	for p := r.peers[from]; p != nil && len(p.open) > 0; {
		r.cancel(now, p.open[0], Forgotten)
	}
	r.finished.forget(func(k key) bool { return k.path.From.Addr() == from })
}

// Stats returns the counters.
func (r *Reassembler) Stats() Stats {
	s := r.stats
	s.Open, s.Bytes = r.queue.len, r.bytes
	return s
}

func (r *Reassembler) limit(h someip.Header) int {
	if r.cfg.Limit == nil {
		return r.cfg.MaxMessage
	}
	return min(r.cfg.Limit(h), r.cfg.MaxMessage)
}
