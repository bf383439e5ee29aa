package runtime

import (
	"errors"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// event is an event or notifier of an offering.
type event struct {
	o   *Offering
	cfg EventConfig

	// mu also orders what is sent, so that a new subscriber never gets an old
	// value of a field after a newer one.
	mu      sync.Mutex
	targets []way
	session uint16
	value   []byte // of a field, once it has one
	known   bool
}

// Notify sends an event to its subscribers. For a field it also becomes the value
// that new subscribers get. It fails with [ErrTooLarge] before anything is sent; that
// a subscriber could not be reached is counted, not reported. The payload may be
// reused once it returns.
func (o *Offering) Notify(event uint16, payload []byte) error {
	e := o.events[event]
	if e == nil {
		return ErrUnknownEvent
	}
	if err := e.fits(payload); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store(payload)
	if len(e.targets) > 0 {
		e.send(payload, e.targets...)
	}
	return nil
}

// SetField sets the value that new subscribers of a field get, and tells nobody.
func (o *Offering) SetField(event uint16, payload []byte) error {
	e := o.events[event]
	if e == nil || !e.cfg.Field {
		return ErrUnknownEvent
	}
	if err := e.fits(payload); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.store(payload)
	return nil
}

func (e *event) fits(payload []byte) error {
	limit := someip.MaxUDPPayload
	if e.cfg.Reliable {
		limit = e.o.n.maxPayload()
	}
	if len(payload) > limit { // UDP-2: case 11
		return ErrTooLarge
	}
	return nil
}

// store, send, subscribe and setTargets: e.mu is held or taken.
func (e *event) store(payload []byte) {
	if e.cfg.Field {
		e.value, e.known = append(e.value[:0], payload...), true
	}
}

func (e *event) send(payload []byte, to ...way) {
	e.session = someip.NextSession(e.session)
	m := someip.NewNotification(e.o.key.Service, e.cfg.ID, e.o.key.Major, e.session, payload)
	p := buffers.Get().(*[]byte)
	b := m.Append((*p)[:0])
	for _, w := range to {
		if err := w.write(b); errors.Is(err, endpoint.ErrQueueFull) {
			e.o.n.stats.eventsDropped.Add(1)
		} else if err != nil {
			e.o.n.stats.sendErrors.Add(1)
		}
	}
	if cap(b) <= keepBuffer {
		*p = b
	}
	buffers.Put(p)
}

// subscribe takes a subscriber in, and sends it the value of a field if it is to
// have one. A field without value sends when it gets one (14.3).
func (e *event) subscribe(targets []way, a sd.SubscriberAdded) {
	w, ok := e.o.wayTo(e, a.Endpoints)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.targets = targets
	if ok && a.Initial && e.cfg.Field && e.known {
		e.send(e.value, w)
	}
}

func (e *event) setTargets(targets []way) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.targets = targets
}
