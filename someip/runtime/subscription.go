package runtime

import (
	"net/netip"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip/e2e"
)

// SubscribeConfig describes a subscription of one eventgroup.
type SubscribeConfig struct {
	Eventgroup uint16
	// Events are those wanted. Nil: all that the instance sends, also those of
	// other eventgroups to which somebody on this network subscribed.
	Events []uint16
	// Filters leave out notifications, by event. Events without one all pass.
	Filters map[uint16]FilterConfig
	// Unreliable and Reliable say over which transports the group has events
	// (UDP, TCP). Neither: UDP if the instance is offered over it, else TCP.
	Unreliable, Reliable bool
	// OnEvent gets the notifications, one at a time for each transport. It must
	// not block, unless there is a queue.
	OnEvent func(Notification)
	// Queue, if not 0, lets as many notifications wait while OnEvent is busy, which
	// then runs on a goroutine of the subscription, one at a time. When it is full
	// the oldest goes, first of events that came again: the newest value of a field
	// stays. [Notification.Gap] tells how many went.
	Queue int
	// OnState, if set, hears of each change of state. It must not block.
	OnState func(SubscriptionStatus)
}

// Notification is one event received.
type Notification struct {
	Event   uint16
	Session uint16 // 0: the server does not count
	// Payload is a view, valid until OnEvent returns: copy it to keep it.
	Payload []byte
	// Initial marks the first notification of this event since the subscription
	// was made or made anew. For a field it is the value that the server sends to
	// a new subscriber; for other events it says nothing.
	Initial bool
	// Gap is how many notifications the queue of the subscription has dropped since
	// the one before.
	Gap      uint32
	Reliable bool           // it came over TCP
	Peer     netip.AddrPort // the server's endpoint
	// E2E is the verdict on the event, if it is protected.
	E2E e2e.Result
}

// SubscriptionState is where a subscription stands.
type SubscriptionState uint8

// States.
const (
	// SubscriptionWaiting: the instance is not there, or has not answered yet.
	SubscriptionWaiting SubscriptionState = iota
	// SubscriptionActive: the server has acknowledged it.
	SubscriptionActive
	// SubscriptionRefused: the server refused it; it is tried again with the next offer.
	SubscriptionRefused
)

// String returns the state as a word.
func (s SubscriptionState) String() string {
	switch s {
	case SubscriptionActive:
		return "active"
	case SubscriptionRefused:
		return "refused"
	default:
		return "waiting"
	}
}

// SubscriptionStatus is a state, the reason for it where it is not active, and
// since when it lasts.
type SubscriptionStatus struct {
	State  SubscriptionState
	Reason Reason
	Since  time.Time
}

// Subscription is one consumer of an eventgroup. It lasts until it is closed,
// however often its instance goes and comes.
type Subscription struct {
	up     *upstream
	cfg    SubscribeConfig
	events map[uint16]struct{} // nil: all
	filter map[uint16]*filter
	stop   func() bool // releases the context
	queue  *queue      // nil: OnEvent gets them at once
	closed atomic.Bool
}

// Status returns where the subscription stands.
func (s *Subscription) Status() SubscriptionStatus { return s.up.statusNow() }

// Close ends the subscription. The last one of an eventgroup withdraws it from the
// server. No callback begins after Close has returned, except those of a
// notification or state that is being delivered.
func (s *Subscription) Close() {
	s.stop()
	s.end()
}

func (s *Subscription) end() {
	if !s.closed.Swap(true) {
		s.up.remove(s)
	}
}

func (s *Subscription) wants(event uint16) bool {
	if s.closed.Load() {
		return false
	}
	if s.events == nil {
		return true
	}
	_, ok := s.events[event]
	return ok
}
