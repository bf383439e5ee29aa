package registry

import (
	"context"
	"time"

	"carisma.dev/gateway/controlplane/store"
)

// node is the registry's own state of a node; Registry.mu guards it.
type node struct {
	store.Node
	lost   bool
	since  time.Time // of lost, or of life
	stored bool      // the store knew it when the control plane started

	// synced: its digest came since the control plane started (CAR-50).
	synced bool
	// stale: its lease expired and no digest came since, so what its gateway
	// bridges is not there.
	stale   bool
	staleAt time.Time
	// mute: its proxy does not answer either. Meant only while stale.
	mute   bool
	muteAt time.Time

	// used: the present epoch was proven by a request. Until then the answer that
	// gave it may have been lost, and the epoch before it still counts.
	used bool
	prev uint64

	deadline  time.Time
	lease     *time.Timer
	stopProbe context.CancelFunc
	session   *Session
	services  map[string]*instance

	peer    string // where it registered from, "" if that is not known
	changes rate
	digest  *time.Timer // ends the session if no digest comes
}

func newNode(rec store.Node) *node {
	return &node{
		Node: rec, since: time.Now(), session: newSession(), services: map[string]*instance{},
	}
}

// stop ends all that runs for the node.
func (n *node) stop() {
	if n.lease != nil {
		n.lease.Stop()
	}
	if n.digest != nil {
		n.digest.Stop()
	}
	n.endProbe()
}

func (n *node) endProbe() {
	if n.stopProbe != nil {
		n.stopProbe()
		n.stopProbe = nil
	}
}

// Session is the time in which one epoch of a node counts.
type Session struct {
	done     chan struct{}
	err      error
	digested bool // a digest came; Registry.mu guards it
}

func newSession() *Session { return &Session{done: make(chan struct{})} }

// Done is closed when another registration or a newer epoch takes over.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session ended, once Done is closed.
func (s *Session) Err() error { return s.err }

func (s *Session) end(err error) {
	s.err = err
	close(s.done)
}
