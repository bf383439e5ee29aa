package runtime

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// way is how messages get to a peer: over a connection, or by datagrams from a
// socket.
type way struct {
	n    *Network
	conn *endpoint.Conn
	udp  endpoint.PacketSocket
	to   netip.AddrPort
}

// send hands m over, protected for a party if its messages are. It does not keep
// the payload.
func (w way) send(m someip.Message, t *traits, p party) error {
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	t.lock()
	defer t.unlock()
	b, err := t.append((*buf)[:0], p, m)
	*buf = b
	if err != nil {
		return err
	}
	return w.write(b, t)
}

// notify hands over an event. That it did not leave is counted: other subscribers
// are not concerned.
func (w way) notify(b []byte, t *traits) {
	if err := w.write(b, t); err != nil {
		w.failed(err)
	}
}

func (w way) failed(err error) {
	if errors.Is(err, endpoint.ErrQueueFull) {
		w.n.stats.eventsDropped.Add(1)
	} else {
		w.n.stats.sendErrors.Add(1)
	}
}

// write hands over one whole message.
func (w way) write(b []byte, t *traits) (err error) {
	switch {
	case w.conn != nil:
		err = w.conn.Send(b)
	case !t.handled(len(b)):
		err = w.udp.Send(w.to, b)
	case len(b) <= someip.MaxUDPDatagram && t.waits():
		err = w.n.trains.send(track{w.udp, w.to}, t, w.n.now(), b)
	default:
		err = w.n.lanes.send(track{w.udp, w.to}, *t.tp, b)
	}
	if err == nil {
		w.n.stats.sent.Add(1)
	}
	return err
}

// way finds how a message of a size can reach the instance now. Over TCP it
// connects first where there is no connection (TCP-2).
func (c *Client) way(ctx context.Context, t *traits, reliable bool, size int) (way, error) {
	st := c.instance.state.Load()
	switch {
	case !st.Up:
		return way{}, st.unavailable()
	case !reliable && !st.Endpoints.UDP.IsValid(), reliable && st.link == nil:
		return way{}, ErrNoTransport
	case size > c.n.limitOf(t, reliable):
		return way{}, ErrTooLarge // UDP-2: case 11
	case !reliable:
		return way{n: c.n, udp: c.instance.udp, to: st.Endpoints.UDP}, nil
	}
	conn, err := st.link.get(ctx)
	if err != nil {
		return way{}, c.linkError(st, err)
	}
	return way{n: c.n, conn: conn, to: st.Endpoints.TCP}, nil
}

func (c *Client) linkError(st *remoteState, err error) error {
	var refused *dialError
	if errors.As(err, &refused) {
		return &UnavailableError{Key: c.key, Reason: ReasonUnreachable, Since: refused.since, Err: refused.err}
	}
	if now := c.instance.state.Load(); errors.Is(err, ErrClosed) && now != st && !now.Up {
		return now.unavailable() // it went while we were connecting
	}
	return err
}

// sendFailed says what an error of the socket means to a caller.
func (c *Client) sendFailed(err error) error {
	c.n.stats.sendErrors.Add(1)
	if errors.Is(err, net.ErrClosed) {
		if st := c.instance.state.Load(); !st.Up {
			return st.unavailable()
		}
		return &UnavailableError{Key: c.key, Reason: ReasonConnection, Since: c.n.now()}
	}
	return err
}
