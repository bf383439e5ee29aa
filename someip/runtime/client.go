package runtime

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/endpoint"
)

// Response is the answer to a call.
type Response struct {
	// Payload belongs to the caller.
	Payload []byte
	// Code is E_OK or the error that the server answered.
	Code someip.ReturnCode
	// Exception says that the answer was an ERROR message (0x81).
	Exception bool
	// E2E is the verdict on the answer, if its messages are protected. An error
	// without payload comes from the stack of the server and is not: NO_NEW_DATA.
	E2E e2e.Result
}

// Client calls one service instance, under a client id of its own. It stays
// valid while the instance goes and comes. Its methods are safe for concurrent use.
type Client struct {
	n   *Network
	key InstanceKey
	id  uint16

	instance *remote

	mu      sync.Mutex // guards what follows
	closed  bool
	session uint16
	pending map[uint16]*call // by session
}

// call is an outstanding call. Whoever removes it from the pending calls
// of its client settles it: the receiver, a failure, or the caller itself.
type call struct {
	done   chan struct{} // receives once when settled by another than the caller
	method uint16
	conn   *endpoint.Conn // the connection it went over; nil: UDP
	to     netip.AddrPort
	resp   Response
	err    error
	timer  *time.Timer
}

// newCall makes one for the pool of a network, and not of all: the timer belongs to
// the clock that the network was started with, which tests may have faked.
func newCall() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &call{done: make(chan struct{}, 1), timer: t}
}

func (c *Client) release(k *call) {
	*k = call{done: k.done, timer: k.timer}
	c.n.calls.Put(k)
}

// Key returns the instance that the client was made for.
func (c *Client) Key() InstanceKey { return c.key }

// ID returns the client id.
func (c *Client) ID() uint16 { return c.id }

// Availability returns the state of the instance as far as discovery knows it.
func (c *Client) Availability() Availability { return c.instance.availability() }

// Call sends a request, over TCP if reliable is set, and waits for the answer.
// The error is nil when there was an answer, whatever its code. Otherwise it is
// *[UnavailableError] if the instance is not there, went, or its connection was
// lost; [ErrTimeout] or the error of the context; *[E2EError]; [ErrTooLarge],
// [ErrNoTransport], [ErrBusy] or [ErrClosed], for which nothing was sent. SOME/IP cannot take back a
// request: after a timeout the server may still execute it.
func (c *Client) Call(ctx context.Context, method uint16, reliable bool, payload []byte) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	t := c.instance.wiring.requests[method]
	w, err := c.way(ctx, t, reliable, len(payload))
	if err != nil {
		return Response{}, err
	}
	k := c.n.calls.Get().(*call)
	k.method, k.conn, k.to = method, w.conn, w.to
	session, err := c.enter(k)
	if err != nil {
		c.release(k)
		return Response{}, err
	}
	// The instance may have gone between the look-up and the entry, before which
	// its going could not fail this call.
	if err := c.instance.stillAt(w.to); err != nil && c.leave(session, k) {
		c.release(k)
		return Response{}, err
	}
	m := someip.NewRequest(c.key.Service, method, c.key.Major, c.id, session, payload)
	if err := w.send(m, t, party{client: c.id}); err != nil && c.leave(session, k) {
		c.release(k)
		return Response{}, c.sendFailed(err)
	}
	return c.wait(ctx, session, k)
}

// wait blocks until the call is settled or the caller gives up.
func (c *Client) wait(ctx context.Context, session uint16, k *call) (Response, error) {
	var err error
	timeout := k.timer.C
	if _, ok := ctx.Deadline(); ok {
		timeout = nil
	} else {
		k.timer.Reset(c.n.cfg.CallTimeout)
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout:
		err = ErrTimeout
	}
	k.timer.Stop()
	if err != nil {
		if c.leave(session, k) {
			c.n.stats.timeouts.Add(1)
			c.release(k)
			return Response{}, err
		}
		<-k.done // settled at the same moment
	}
	resp, err := k.resp, k.err
	c.release(k)
	return resp, err
}

// Send sends a fire-and-forget request: nil says that it was handed to the
// network, or to the queue of the connection. Errors are those of Call.
func (c *Client) Send(ctx context.Context, method uint16, reliable bool, payload []byte) error {
	t := c.instance.wiring.requests[method]
	w, err := c.way(ctx, t, reliable, len(payload))
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	var session uint16
	if !c.n.cfg.NoSessions || t != nil && t.tp != nil {
		c.session = someip.NextSession(c.session)
		session = c.session
	}
	c.mu.Unlock()
	m := someip.NewRequestNoReturn(c.key.Service, method, c.key.Major, c.id, session, payload)
	if err := w.send(m, t, party{client: c.id}); err != nil {
		return c.sendFailed(err)
	}
	return nil
}

// enter makes k outstanding under the next session id that is not in use (SES-5).
func (c *Client) enter(k *call) (uint16, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, ErrClosed
	}
	if len(c.pending) >= 0xFFFF {
		return 0, ErrBusy
	}
	for {
		c.session = someip.NextSession(c.session)
		if _, used := c.pending[c.session]; !used {
			c.pending[c.session] = k
			return c.session, nil
		}
	}
}

// leave takes k back and reports whether it was still outstanding.
func (c *Client) leave(session uint16, k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[session] != k {
		return false
	}
	delete(c.pending, session)
	return true
}

// Subscribe subscribes to an eventgroup of the instance until the context ends or
// the subscription is closed. Whatever the number of subscriptions on this
// network, the server sees one.
func (c *Client) Subscribe(ctx context.Context, cfg SubscribeConfig) (*Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.n.subscribe(ctx, c.instance, cfg)
}

// Close fails outstanding calls with [ErrClosed] and gives the client id back.
// Subscriptions go on.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.fail(func(*call) bool { return true }, ErrClosed)
	c.n.dropClient(c)
	return nil
}

// fail settles the outstanding calls that match with an error.
func (c *Client) fail(match func(*call) bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for session, k := range c.pending {
		if match(k) {
			delete(c.pending, session)
			k.err = err
			k.done <- struct{}{}
		}
	}
}
