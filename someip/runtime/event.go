package runtime

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// event is an event or notifier of an offering.
type event struct {
	o      *Offering
	cfg    EventConfig
	traits *traits

	// mu also orders what is sent, so that a new subscriber never gets an old
	// value of a field after a newer one.
	mu      sync.Mutex
	targets []way
	session uint16
	value   []byte // of a field, once it has one
	known   bool
	// frame is the protected message that carried value last. A new subscriber gets
	// it again rather than the next counter, of which the others would miss one.
	frame []byte
	late  map[way]int         // tries that are left, of subscribers without an association
	batch []endpoint.Datagram // scratch
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
	if len(e.targets) == 0 {
		return nil
	}
	return e.send(payload, e.targets...)
}

// SetField sets the value that new subscribers of a field get. The first value also goes
// to those who subscribed before there was one; later ones are told to nobody.
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
	first := !e.known
	e.store(payload)
	if first {
		for _, w := range e.targets {
			e.sendInitial(w)
		}
	}
	return nil
}

func (e *event) fits(payload []byte) error {
	if len(payload) > e.o.n.limitOf(e.traits, e.cfg.Reliable) { // UDP-2: case 11
		return ErrTooLarge
	}
	return nil
}

// store, send, subscribe and setTargets: e.mu is held or taken.
func (e *event) store(payload []byte) {
	if e.cfg.Field {
		e.value, e.known = append(e.value[:0], payload...), true
		e.frame = e.frame[:0]
	}
}

func (e *event) send(payload []byte, to ...way) error {
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	e.traits.lock()
	defer e.traits.unlock()
	if err := e.encode(buf, payload); err != nil {
		return err
	}
	if len(to) == 1 || e.cfg.Reliable || e.traits.handled(len(*buf)) {
		for _, w := range to {
			w.notify(*buf, e.traits)
		}
		return nil
	}
	e.batch = e.batch[:0]
	for _, w := range to {
		e.batch = append(e.batch, endpoint.Datagram{To: w.to, Data: *buf})
	}
	sent, _ := e.o.udp.socket().SendBatch(e.batch)
	e.o.n.stats.sent.Add(uint64(sent))
	e.o.n.stats.sendErrors.Add(uint64(len(to) - sent))
	return nil
}

// sendTo sends the value of a field to one subscriber.
func (e *event) sendTo(w way) error {
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	e.traits.lock()
	defer e.traits.unlock()
	if err := e.encode(buf, e.value); err != nil {
		return err
	}
	return w.write(*buf, e.traits)
}

// encode makes the next message of the event. e.traits is locked.
func (e *event) encode(buf *[]byte, payload []byte) (err error) {
	if !e.o.n.cfg.NoSessions || e.traits != nil && e.traits.tp != nil {
		e.session = someip.NextSession(e.session)
	}
	m := someip.NewNotification(e.o.key.Service, e.cfg.ID, e.o.key.Major, e.session, payload)
	if *buf, err = e.traits.append((*buf)[:0], party{}, m); err != nil {
		return err
	}
	if e.cfg.Field && e.traits != nil && e.traits.guard != nil {
		e.frame = append(e.frame[:0], *buf...)
	}
	return nil
}

// subscribe takes a subscriber in, and sends it the value of a field if it is to
// have one. A field without value sends when it gets one (14.3).
func (e *event) subscribe(targets []way, a sd.SubscriberAdded) {
	w, ok := e.o.wayTo(e, a.Endpoints)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.targets = targets
	if ok && a.Initial && e.cfg.Field && e.known {
		e.sendInitial(w)
	}
}

// initial sends the value of a field, if it has one, to somebody new.
func (e *event) initial(w way) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Field && e.known {
		e.sendInitial(w)
	}
}

// A client that begins a DTLS association when it subscribes has it a little later: where
// a datagram of the handshake is lost, or its host is busy, that takes seconds.
const (
	initialTries = 200
	initialPause = 50 * time.Millisecond
)

// sendInitial sends the value of a field to one subscriber, now or as soon as it has
// an association. e.mu is held.
func (e *event) sendInitial(w way) {
	if _, trying := e.late[w]; trying {
		e.late[w] = initialTries // for all that it waits for
		return
	}
	e.tryInitial(w, initialTries)
}

// tryInitial tries it now, and so often later. e.mu is held.
func (e *event) tryInitial(w way, left int) {
	delete(e.late, w)
	var err error
	if len(e.frame) > 0 {
		err = w.write(e.frame, e.traits)
	} else {
		err = e.sendTo(w)
	}
	if err == nil {
		return
	}
	if e.o.wiring.dtls == nil || left == 0 || errors.Is(err, net.ErrClosed) {
		w.failed(err)
		return
	}
	if e.late == nil {
		e.late = make(map[way]int)
	}
	e.late[w] = left
	time.AfterFunc(initialPause, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if slices.Contains(e.targets, w) {
			e.tryInitial(w, e.late[w]-1)
		} else {
			delete(e.late, w)
		}
	})
}

func (e *event) setTargets(targets []way) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.targets = targets
}
