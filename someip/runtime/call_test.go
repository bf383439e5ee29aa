package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// transports are what calls and events are tested over, and whether it is reliable.
var transports = map[string]bool{"udp": false, "tcp": true}

func TestCall(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			s := newServer()
			offer(t, d.Start(1), s)
			c := client(t, d.Start(2))
			available(t, c, true)

			r := call(t, c, echo, reliable, "hello")
			require.Equal(t, runtime.Response{Payload: []byte("hello")}, r)
			require.Empty(t, call(t, c, echo, reliable, "").Payload)

			r = call(t, c, fail, reliable, "")
			require.Equal(t, runtime.Response{Payload: []byte("why"), Code: 0x23, Exception: true}, r) // case 4
			r = call(t, c, failSoft, reliable, "")
			require.EqualValues(t, 0x23, r.Code)
			require.False(t, r.Exception)
			r = call(t, c, 0x0777, reliable, "")
			require.EqualValues(t, 0x03, r.Code, "unknown method")
			r = call(t, c, tell, reliable, "")
			require.EqualValues(t, 0x0A, r.Code, "wants fire and forget")

			require.NoError(t, c.Send(context.Background(), tell, reliable, []byte("go")))
			require.Equal(t, "go", receive(t, s.told))
		})
	}
}

func TestCallsInParallel(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			offer(t, d.Start(1), newServer())
			n := d.Start(2)
			var wg sync.WaitGroup
			for i := range 4 {
				c := client(t, n)
				available(t, c, true)
				for j := range 8 {
					wg.Go(func() {
						for k := range 50 {
							want := fmt.Sprint(i, j, k)
							require.Equal(t, want, string(call(t, c, echo, reliable, want).Payload))
						}
					})
				}
			}
			wg.Wait()
			require.Zero(t, n.Stats().UnmatchedReplies)
		})
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			s := newServer()
			offer(t, d.Start(1), s)
			n := d.Start(2, func(c *runtime.NetworkConfig) { c.CallTimeout = 20 * time.Millisecond })
			c := client(t, n)
			available(t, c, true)

			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-s.held
				cancel()
			}()
			// A deadline takes the place of the default timeout.
			withDeadline, stop := context.WithTimeout(ctx, patience)
			defer stop()
			_, err := c.Call(withDeadline, silent, reliable, nil)
			require.ErrorIs(t, err, context.Canceled)

			_, err = c.Call(context.Background(), silent, reliable, nil)
			require.ErrorIs(t, err, runtime.ErrTimeout) // SES-6

			late := receive(t, s.held)
			require.NoError(t, late.Respond(nil))
			eventually(t, func() bool { return n.Stats().UnmatchedReplies == 1 }, "late answer counted")
			require.EqualValues(t, 2, n.Stats().Timeouts)
			require.ErrorIs(t, late.Respond(nil), runtime.ErrAnswered)
		})
	}
}

func TestSessionsInUseAreSkipped(t *testing.T) {
	d := someiptest.NewDomain(t)
	s := newServer()
	s.held = make(chan *runtime.Request, 3)
	offer(t, d.Start(1), s)
	c := client(t, d.Start(2))
	available(t, c, true)

	results := make(chan runtime.Response)
	go func() { results <- call(t, c, silent, false, "") }()
	held := receive(t, s.held)
	require.EqualValues(t, 1, held.Session)
	runtime.SetSession(c, 0xFFFE)                 // the counter is about to wrap
	for _, want := range []uint16{0xFFFF, 2, 3} { // 0 is none (SES-1), 1 is in use
		call(t, c, echo, false, "")
		require.Equal(t, want, s.lastSession())
	}
	require.NoError(t, held.Respond([]byte("at last")))
	require.Equal(t, "at last", string(receive(t, results).Payload))
}

func TestServiceNotThere(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	before := time.Now()
	c := client(t, n)
	_, err := c.Call(context.Background(), echo, false, nil)
	var gone *runtime.UnavailableError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, runtime.ReasonNotOffered, gone.Reason)
	require.Equal(t, key, gone.Key)
	require.WithinRange(t, gone.Since, before, time.Now())
	require.ErrorAs(t, c.Send(context.Background(), tell, false, nil), &gone)

	require.NoError(t, c.Close())
	offer(t, d.Start(1), newServer())
	_, err = c.Call(context.Background(), echo, false, nil)
	require.Error(t, err)
}

func TestStopOfferFailsOutstandingCalls(t *testing.T) {
	for name, reliable := range transports {
		t.Run(name, func(t *testing.T) {
			d := someiptest.NewDomain(t)
			s := newServer()
			n := d.Start(1)
			o := offer(t, n, s)
			c := client(t, d.Start(2))
			available(t, c, true)
			errs := make(chan error, 1)
			go func() {
				_, err := c.Call(context.Background(), silent, reliable, nil)
				errs <- err
			}()
			receive(t, s.held)
			o.Stop()
			var gone *runtime.UnavailableError
			require.ErrorAs(t, receive(t, errs), &gone)
			require.Equal(t, runtime.ReasonStopOffer, gone.Reason)
			_, err := c.Call(context.Background(), echo, reliable, nil)
			require.ErrorAs(t, err, &gone)
			require.Equal(t, runtime.ReasonStopOffer, gone.Reason)
			o.Stop()

			// Offered again, the same client works again.
			offer(t, n, s)
			available(t, c, true)
			require.Equal(t, "again", string(call(t, c, echo, reliable, "again").Payload))
		})
	}
}

func TestTransportNotOffered(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(1)
	cfg := service(newServer())
	cfg.TCPPort, cfg.Events = 0, nil
	_, err := n.Offer(cfg)
	require.NoError(t, err)
	c := client(t, d.Start(2))
	available(t, c, true)
	_, err = c.Call(context.Background(), echo, true, nil)
	require.ErrorIs(t, err, runtime.ErrNoTransport)
}

// SES-7.
func TestLostConnectionFailsItsCalls(t *testing.T) {
	d := someiptest.NewDomain(t)
	s := newServer()
	stack := d.StartStack(1)
	n := stack.Network("lan")
	offer(t, n, s)
	c := client(t, d.Start(2))
	available(t, c, true)
	errs := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), silent, true, []byte("x"))
		errs <- err
	}()
	receive(t, s.held)
	require.NoError(t, stack.Close())
	var gone *runtime.UnavailableError
	require.ErrorAs(t, receive(t, errs), &gone)
	require.Contains(t, []runtime.Reason{runtime.ReasonConnection, runtime.ReasonStopOffer}, gone.Reason)
}

func TestCase11PayloadLimit(t *testing.T) {
	d := someiptest.NewDomain(t)
	s := newServer()
	o := offer(t, d.Start(1), s)
	c := client(t, d.Start(2))
	available(t, c, true)
	fits, over := strings.Repeat("x", 1400), strings.Repeat("x", 1401)
	require.Len(t, call(t, c, echo, false, fits).Payload, 1400)
	_, err := c.Call(context.Background(), echo, false, []byte(over))
	require.ErrorIs(t, err, runtime.ErrTooLarge)
	require.ErrorIs(t, c.Send(context.Background(), tell, false, []byte(over)), runtime.ErrTooLarge)
	require.ErrorIs(t, o.Notify(event, []byte(over)), runtime.ErrTooLarge)
	require.Len(t, call(t, c, echo, true, strings.Repeat("x", 100_000)).Payload, 100_000)

	// An answer that does not fit is an error for both sides.
	results := make(chan runtime.Response)
	go func() { results <- call(t, c, silent, false, "") }()
	require.ErrorIs(t, receive(t, s.held).Respond([]byte(over)), runtime.ErrTooLarge)
	require.EqualValues(t, 0x01, receive(t, results).Code)
}

func TestClientIDs(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2, func(c *runtime.NetworkConfig) { c.ClientIDs = runtime.Range{First: 0x2001, Last: 0x2002} })
	a, b := client(t, n), client(t, n)
	require.ElementsMatch(t, []uint16{0x2001, 0x2002}, []uint16{a.ID(), b.ID()})
	_, err := n.Client(key)
	require.ErrorIs(t, err, runtime.ErrNoClientID)
	require.NoError(t, a.Close())
	require.Equal(t, a.ID(), client(t, n).ID())
	_, err = n.Client(runtime.InstanceKey{Service: 1, Instance: 0xFFFF, Major: 1})
	require.Error(t, err)
}
