package tp

import (
	"net/netip"
	"slices"
)

// peer holds the unfinished messages from one address.
type peer struct {
	addr  netip.Addr
	open  []*assembly
	bytes int
}

// oldest returns the message of the peer that waits longest, other than keep.
func (p *peer) oldest(keep *assembly) *assembly {
	var found *assembly
	for _, a := range p.open {
		if a != keep && (found == nil || a.deadline.Before(found.deadline)) {
			found = a
		}
	}
	return found
}

func (p *peer) remove(a *assembly) {
	i := slices.Index(p.open, a)
	last := len(p.open) - 1
	p.open[i] = p.open[last]
	p.open[last] = nil
	p.open = p.open[:last]
}

// queue holds all unfinished messages, the one whose deadline comes first ahead.
type queue struct {
	front, back *assembly
	len         int
}

func (q *queue) push(a *assembly) {
	a.prev, a.next = q.back, nil
	if q.back == nil {
		q.front = a
	} else {
		q.back.next = a
	}
	q.back = a
	q.len++
}

func (q *queue) remove(a *assembly) {
	if a.prev == nil {
		q.front = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		q.back = a.prev
	} else {
		a.next.prev = a.prev
	}
	a.prev, a.next = nil, nil
	q.len--
}
