package runtime_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/someip/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func client(tb testing.TB, n *runtime.Network) *runtime.Client {
	tb.Helper()
	c, err := n.Client(key)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// available waits until the instance of a client is, or is not, there.
func available(tb testing.TB, c *runtime.Client, up bool) {
	tb.Helper()
	eventually(tb, func() bool { return c.Availability().Up == up }, "availability of %v", c.Key())
}

func eventually(tb testing.TB, cond func() bool, what string, args ...any) {
	tb.Helper()
	require.Eventually(tb, cond, patience, time.Millisecond, fmt.Sprintf(what, args...))
}

func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(tb, "nothing came")
		panic("unreachable")
	}
}

// key is the instance that the tests offer.
var key = runtime.InstanceKey{Service: 0x1234, Instance: 0x5678, Major: 2}

// The service under test.
const (
	echo     = 0x0001 // answers with the payload
	fail     = 0x0002 // answers with application error 0x23 as exception, with a payload
	failSoft = 0x0003 // the same in a RESPONSE
	silent   = 0x0004 // never answers
	tell     = 0x0005 // fire and forget
	twice    = 0x0006 // answers twice
	group    = 0x4455
	event    = 0x8001
	field    = 0x8002
	tcpGroup = 0x4466
	tcpField = 0x8003
)

func service(h runtime.Handler) runtime.ServiceConfig {
	return runtime.ServiceConfig{
		Service: key.Service, Instance: key.Instance, Major: key.Major, Minor: 7,
		UDPPort: runtime.AutoPort, TCPPort: runtime.AutoPort,
		Methods: []runtime.MethodConfig{{ID: echo}, {ID: fail}, {ID: failSoft}, {ID: silent}, {ID: twice}, {ID: tell, FireAndForget: true}},
		Events: []runtime.EventConfig{
			{ID: event, Eventgroups: []uint16{group}},
			{ID: field, Eventgroups: []uint16{group}, Field: true},
			{ID: tcpField, Eventgroups: []uint16{tcpGroup}, Field: true, Reliable: true},
		},
		Handler: h,
	}
}

// server is the handler of the service.
type server struct {
	told chan string // payloads of tell
	held chan *runtime.Request
	last atomic.Uint32 // session of the last request
}

func (s *server) lastSession() uint16 { return uint16(s.last.Load()) }

func newServer() *server {
	return &server{told: make(chan string, 100), held: make(chan *runtime.Request, 100)}
}

func (s *server) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	s.last.Store(uint32(r.Session))
	switch r.Method {
	case echo, twice:
		_ = r.Respond(r.Payload)
		if r.Method == twice {
			_ = r.Respond(r.Payload)
		}
	case fail:
		_ = r.Fail(0x23, true, []byte("why"))
	case failSoft:
		_ = r.Fail(0x23, false, nil)
	case silent:
		s.held <- r
	case tell:
		s.told <- string(r.Payload)
	}
}

func offer(tb testing.TB, n *runtime.Network, h runtime.Handler) *runtime.Offering {
	tb.Helper()
	o, err := n.Offer(service(h))
	require.NoError(tb, err)
	return o
}

func call(tb testing.TB, c *runtime.Client, method uint16, reliable bool, payload string) runtime.Response {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.Call(ctx, method, reliable, []byte(payload))
	require.NoError(tb, err)
	return r
}
