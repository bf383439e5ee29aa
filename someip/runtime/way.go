package runtime

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
)

// way is how messages get to a peer: over a connection, or by datagrams from a
// socket.
type way struct {
	conn *endpoint.Conn
	udp  *endpoint.UDP
	to   netip.AddrPort
	sent *atomic.Uint64 // counts the messages handed over
}

// send hands m over. It does not keep the payload.
func (w way) send(m someip.Message) error {
	p := buffers.Get().(*[]byte)
	b := m.Append((*p)[:0])
	err := w.write(b)
	if cap(b) <= keepBuffer {
		*p = b
	}
	buffers.Put(p)
	return err
}

// write hands over one whole message.
func (w way) write(b []byte) (err error) {
	if w.conn != nil {
		err = w.conn.Send(b)
	} else {
		err = w.udp.Send(w.to, b)
	}
	if err == nil {
		w.sent.Add(1)
	}
	return err
}

// way finds how to reach the instance now. Over TCP it connects first where there
// is no connection (TCP-2).
func (c *Client) way(ctx context.Context, reliable bool, size int) (way, error) {
	st := c.instance.state.Load()
	switch {
	case !st.Up:
		return way{}, st.unavailable()
	case !reliable && !st.Endpoints.UDP.IsValid(), reliable && !st.Endpoints.TCP.IsValid():
		return way{}, ErrNoTransport
	case !reliable && size > someip.MaxUDPPayload, reliable && size > c.n.maxPayload():
		return way{}, ErrTooLarge // UDP-2: case 11
	case !reliable:
		return way{udp: c.n.udp, to: st.Endpoints.UDP, sent: &c.n.stats.sent}, nil
	}
	conn, err := st.link.get(ctx)
	if err != nil {
		return way{}, c.linkError(st, err)
	}
	return way{conn: conn, to: st.Endpoints.TCP, sent: &c.n.stats.sent}, nil
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
