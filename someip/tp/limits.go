package tp

import (
	"time"

	"carisma.dev/gateway/someip"
)

// start begins a message, after the oldest ones have made room for it (TP-9).
func (r *Reassembler) start(now time.Time, k key, h someip.Header) *assembly {
	from := k.path.From.Addr()
	if p := r.peers[from]; p != nil && len(p.open) >= r.cfg.MaxPeerMessages {
		r.cancel(now, p.oldest(nil), Evicted)
	}
	if r.queue.len >= r.cfg.MaxMessages {
		r.cancel(now, r.queue.front, Evicted)
	}
	p := r.peers[from]
	if p == nil {
		p = pop(&r.sparePeers)
		if p == nil {
			p = new(peer)
		}
		p.addr = from
		r.peers[from] = p
	}
	a := pop(&r.spare)
	if a == nil {
		a = new(assembly)
	}
	r.spareBytes -= a.memory()
	a.reset()
	h.Type = h.Type.Base()
	a.key, a.session, a.header, a.owner = k, h.Session, h, p
	a.deadline = now.Add(r.cfg.Timeout)
	r.open[k] = a
	p.open = append(p.open, a)
	r.queue.push(a)
	r.account(a, a.memory())
	r.stats.Started++
	return a
}

// shrink keeps the limits on memory at the cost of others than a, and reports
// whether that was enough.
func (r *Reassembler) shrink(now time.Time, a *assembly) bool {
	for a.owner.bytes > r.cfg.MaxPeerBytes {
		oldest := a.owner.oldest(a)
		if oldest == nil {
			return false
		}
		r.cancel(now, oldest, Evicted)
	}
	for r.bytes > r.cfg.MaxBytes {
		oldest := r.queue.front // a is the youngest
		if oldest == a {
			return false
		}
		r.cancel(now, oldest, Evicted)
	}
	return true
}

// reject drops a segment together with the message that it belongs to, if a is
// that. The segments that follow are stray then.
func (r *Reassembler) reject(now time.Time, k key, session uint16, a *assembly, reason Reason, offset uint32) error {
	if a != nil && a.session == session {
		r.cancel(now, a, reason)
	} else {
		r.finished.add(k, session, now.Add(r.cfg.Timeout))
	}
	return r.drop(reason, offset)
}

func (r *Reassembler) drop(reason Reason, offset uint32) error {
	r.stats.Dropped[reason]++
	return &DiscardError{Reason: reason, Offset: offset}
}

// cancel throws an unfinished message away.
func (r *Reassembler) cancel(now time.Time, a *assembly, reason Reason) {
	r.stats.Cancelled[reason]++
	if r.cfg.OnCancel != nil {
		r.cfg.OnCancel(Cancelled{Path: a.key.path, Header: a.header, Received: a.received(), Reason: reason})
	}
	r.remove(a)
	if reason != Restarted {
		r.finished.add(a.key, a.session, now.Add(r.cfg.Timeout))
	}
	r.keep(a)
}

// remove takes a message out of all lists.
func (r *Reassembler) remove(a *assembly) {
	r.account(a, -a.memory())
	delete(r.open, a.key)
	r.queue.remove(a)
	p := a.owner
	p.remove(a)
	if len(p.open) == 0 {
		delete(r.peers, p.addr)
		if len(r.sparePeers) < maxSpare {
			r.sparePeers = append(r.sparePeers, p)
		}
	}
}

func (r *Reassembler) account(a *assembly, bytes int) {
	r.bytes += bytes
	a.owner.bytes += bytes
}

// release takes back the memory of the message that was delivered.
func (r *Reassembler) release() {
	if a := r.delivered; a != nil {
		r.delivered = nil
		r.keep(a)
	}
}

// keep keeps an assembly for reuse unless there is enough.
func (r *Reassembler) keep(a *assembly) {
	if n := a.memory(); len(r.spare) < maxSpare && r.spareBytes+n <= maxSpareBytes {
		r.spare = append(r.spare, a)
		r.spareBytes += n
	}
}

func pop[T any](s *[]*T) *T {
	last := len(*s) - 1
	if last < 0 {
		return nil
	}
	v := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return v
}
