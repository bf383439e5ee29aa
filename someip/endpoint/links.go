package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// ErrLinksClosed says that the [Links] was closed.
var ErrLinksClosed = fmt.Errorf("endpoint: links: %w", net.ErrClosed)

// Links tells whether this host has an address and whether its interface works,
// and when that changes: a cable is pulled, an interface comes late, DHCP gives
// the address up. One for a process is enough. Its methods are safe for
// concurrent use.
type Links struct {
	source linkSource
	serve  sync.WaitGroup

	mu      sync.Mutex
	state   linkState
	watches map[*watch]struct{}
	closed  bool
	done    chan struct{} // closed with it
}

// Presence says whether a network can be used.
type Presence uint8

// Presences.
const (
	// Absent: no interface has the address, or the one that was named does not.
	Absent Presence = iota
	// Down: there is the address, but its interface is down or without carrier.
	Down
	// Up: sockets can be bound to the address and reach others.
	Up
)

// String returns "absent", "down" or "up".
func (p Presence) String() string {
	switch p {
	case Absent:
		return "absent"
	case Down:
		return "down"
	default:
		return "up"
	}
}

// watch is one Follow.
type watch struct {
	addr  netip.Addr
	iface string
	f     func(Presence)
	last  Presence
}

// WatchLinks begins to watch the interfaces and addresses of this host, more
// exactly of the network namespace that the process is in. Close it at last.
func WatchLinks() (*Links, error) {
	l := &Links{watches: make(map[*watch]struct{}), done: make(chan struct{})}
	if err := l.source.open(); err != nil {
		return nil, err
	}
	if err := l.source.dump(&l.state); err != nil {
		l.source.close()
		return nil, err
	}
	l.serve.Go(l.run)
	return l, nil
}

// Presence returns how an own address is now: on the interface of that name, or
// on any if it is empty.
func (l *Links) Presence(own netip.Addr, iface string) Presence {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.presence(own, iface)
}

// Follow returns the presence of an own address, on the interface of that name or
// on any if it is empty, and calls f for each change from then on: from a goroutine
// of l, one call at a time. stop does not wait for a call that is under way.
//
// When an address is up again, call [UDP.Rejoin] of its multicast sockets and of
// those that send to groups, and let service discovery begin anew (9.6); sockets
// bound to the address need not be opened again.
func (l *Links) Follow(own netip.Addr, iface string, f func(Presence)) (now Presence, stop func()) {
	w := &watch{addr: own, iface: iface, f: f}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.last = l.state.presence(own, iface)
	l.watches[w] = struct{}{}
	return w.last, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watches, w)
	}
}

// Wait returns when the host has an own address and can bind it, which may be
// before its interface is up; or with the error of ctx. It serves who got a
// [NoAddressError].
func (l *Links) Wait(ctx context.Context, own netip.Addr, iface string) error {
	there := make(chan struct{}, 1)
	now, stop := l.Follow(own, iface, func(p Presence) {
		if p != Absent {
			select {
			case there <- struct{}{}:
			default:
			}
		}
	})
	defer stop()
	if now != Absent {
		return nil
	}
	select {
	case <-there:
		return nil
	case <-l.done:
		return ErrLinksClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run applies what the kernel tells, and tells others, until l is closed.
func (l *Links) run() {
	for {
		changes, err := l.source.next()
		if err != nil {
			return
		}
		for _, w := range l.apply(changes) {
			w.f(w.last) // only this goroutine changes last
		}
	}
}

// apply returns those for whom something has changed.
func (l *Links) apply(changes []linkChange) (affected []*watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		l.state.apply(c)
	}
	for w := range l.watches {
		if now := l.state.presence(w.addr, w.iface); now != w.last {
			w.last = now
			affected = append(affected, w)
		}
	}
	return affected
}

// Close ends the watch and waits until no function is running.
func (l *Links) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		l.serve.Wait()
		return nil
	}
	l.closed = true
	close(l.done)
	l.mu.Unlock()
	err := l.source.close()
	l.serve.Wait()
	return err
}
