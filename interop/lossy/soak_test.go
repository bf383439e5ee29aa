package lossy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/lossy"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// What a host of the soak test has.
const (
	echo       = 0x0001
	event      = 0x8001 // of eventgroup 1
	field      = 0x8002 // of eventgroup 2
	callers    = 4
	eventEvery = 2 * time.Millisecond
	quick      = 250 * time.Millisecond // after which a call is given up
)

// host is a stack that offers a service, and uses that of the other host.
type host struct {
	stack     *runtime.Stack
	network   *runtime.Network
	client    *runtime.Client
	service   runtime.ServiceConfig
	key, peer runtime.InstanceKey
	subs      []*runtime.Subscription
	last      [2]atomic.Uint64 // values of the event and the field that came last

	mu       sync.Mutex // guards offering
	offering *runtime.Offering

	started, answered, timeouts, unavailable, untrusted atomic.Uint64
	unexpected                                          atomic.Pointer[error]
}

func key(number int) runtime.InstanceKey {
	return runtime.InstanceKey{Service: 0x1230 + uint16(number), Instance: 1, Major: 1}
}

// newHost starts the stack of host 1 or 2 in a domain.
func newHost(t *testing.T, d *someiptest.Domain, number int) *host {
	t.Helper()
	h := &host{stack: d.StartStack(byte(number), someiptest.ShortLived, func(c *runtime.NetworkConfig) {
		c.CallTimeout = quick
		c.DrainTimeout = 0 // the default
	})}
	h.network = h.stack.Network("lan")
	protected := runtime.MessageConfig{E2E: &runtime.E2EConfig{Config: e2e.Config{Profile: e2e.P04, DataID: 0x10}, Drop: true}}
	for _, n := range []int{1, 2} {
		require.NoError(t, h.network.Deploy(runtime.Deployment{
			Instance:  key(n),
			Requests:  map[uint16]runtime.MessageConfig{echo: protected},
			Responses: map[uint16]runtime.MessageConfig{echo: protected},
			Events:    map[uint16]runtime.MessageConfig{event: protected, field: protected},
		}))
	}
	h.key = key(number)
	h.peer = key(3 - number)
	return h
}

// begin offers the service and uses the other host. Both stacks are up by then: what
// a host misses that is not there could not be accounted for.
func (h *host) begin(t *testing.T) {
	t.Helper()
	h.service = runtime.ServiceConfig{
		Service: h.key.Service, Instance: h.key.Instance, Major: h.key.Major, UDPPort: 31000,
		Events: []runtime.EventConfig{
			{ID: event, Eventgroups: []uint16{1}},
			{ID: field, Eventgroups: []uint16{2}, Field: true},
		},
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
			_ = r.Respond(r.Payload) // an answer that is lost is the client's time-out
		}),
	}
	h.offer(t)
	// Another service on the port keeps it open while the first is withdrawn: what comes
	// then is counted, too.
	stays := runtime.ServiceConfig{Service: 0x1240, Instance: h.key.Instance, Major: 1, UDPPort: h.service.UDPPort}
	_, err := h.network.Offer(stays)
	require.NoError(t, err)
	h.client, err = h.network.Client(h.peer)
	require.NoError(t, err)
	for i, id := range []uint16{event, field} {
		s, err := h.client.Subscribe(context.Background(), runtime.SubscribeConfig{
			Eventgroup: uint16(i + 1), Events: []uint16{id}, Unreliable: true,
			OnEvent: func(n runtime.Notification) {
				if v, err := strconv.ParseUint(string(n.Payload), 10, 64); err == nil {
					h.last[i].Store(v)
				} else {
					h.fail(fmt.Errorf("event %#x: %q", n.Event, n.Payload))
				}
			},
		})
		require.NoError(t, err)
		h.subs = append(h.subs, s)
	}
}

// String tells where the host stands, for a test that fails.
func (h *host) String() string {
	o := h.current()
	return fmt.Sprintf("%v: subscriptions %+v, %+v; last %d, %d; own subscribers %d, %d; available %+v; discovery %+v",
		h.key, h.subs[0].Status(), h.subs[1].Status(), h.last[0].Load(), h.last[1].Load(),
		o.Subscribers(event), o.Subscribers(field), h.client.Availability(), h.network.DiscoveryStats())
}

func (h *host) fail(err error) { h.unexpected.CompareAndSwap(nil, &err) }

func (h *host) offer(t *testing.T) {
	t.Helper()
	o, err := h.network.Offer(h.service)
	require.NoError(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.offering = o
}

func (h *host) current() *runtime.Offering {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.offering
}

// notify sends a value as event and as field.
func (h *host) notify(value uint64) {
	text := strconv.AppendUint(nil, value, 10)
	for _, id := range []uint16{event, field} {
		if err := h.current().Notify(id, text); err != nil && !errors.Is(err, runtime.ErrClosed) {
			h.fail(fmt.Errorf("notify: %w", err))
		}
	}
}

// call calls the other host once, and counts how it ended.
func (h *host) call(ctx context.Context) bool {
	n := h.started.Add(1)
	text := strconv.FormatUint(n, 10)
	r, err := h.client.Call(ctx, echo, false, []byte(text))
	var unavailable *runtime.UnavailableError
	var untrusted *runtime.E2EError
	switch {
	case err == nil && string(r.Payload) == text:
		h.answered.Add(1)
		return true
	case err == nil && r.Code == someip.OK:
		h.fail(fmt.Errorf("call: %q came for %q", r.Payload, text))
	case err == nil: // a request that was corrupted into a wrong one
		h.untrusted.Add(1)
	case errors.Is(err, runtime.ErrTimeout):
		h.timeouts.Add(1)
	case errors.As(err, &unavailable):
		h.unavailable.Add(1)
	case errors.As(err, &untrusted): // overtaken, or corrupted
		h.untrusted.Add(1)
	default:
		h.fail(fmt.Errorf("call: %w", err))
	}
	return false
}

// load calls and notifies until the context ends.
func (h *host) load(ctx context.Context, work *sync.WaitGroup) {
	background := context.WithoutCancel(ctx)
	for range callers {
		work.Go(func() {
			for ctx.Err() == nil {
				if !h.call(background) { // not there: not as fast as one can
					pause(ctx, eventEvery)
				}
			}
		})
	}
	work.Go(func() {
		for value := uint64(1); ctx.Err() == nil; value++ {
			h.notify(value)
			pause(ctx, eventEvery)
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// soakTime is SOAK, 10 s by default.
func soakTime(tb testing.TB) time.Duration {
	tb.Helper()
	if text := os.Getenv("SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		require.NoError(tb, err, "SOAK")
		return d
	}
	if testing.Short() {
		return 2 * time.Second
	}
	return 10 * time.Second
}

// seed is SEED, or one of now: a run that fails says which.
func seed(tb testing.TB) uint64 {
	tb.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		require.NoError(tb, err, "SEED")
	}
	tb.Logf("SEED=%d", s)
	return s
}

// common is a bad network: a fifth is lost.
var common = lossy.Rates{Drop: 0.2, Duplicate: 0.02, Reorder: 0.05, Jitter: 2 * time.Millisecond}

// TestSoak has two stacks use each other through a network that loses a fifth, while
// one of them withdraws its service now and then. Once the loss ends every client is
// subscribed again, nothing is left behind, and every datagram is accounted for.
func TestSoak(t *testing.T) {
	data := common
	data.Corrupt = 0.02
	soak(t, soakTime(t), lossy.Faults{SD: common, Data: data}, true)
}

// TestSoakCorruptDiscovery also corrupts service discovery, which sends datagrams to
// ports that nobody has: these are not accounted for.
func TestSoakCorruptDiscovery(t *testing.T) {
	rates := common
	rates.Corrupt = 0.05
	soak(t, soakTime(t)/4, lossy.Faults{SD: rates, Data: rates}, false)
}

func soak(t *testing.T, lasts time.Duration, faults lossy.Faults, exact bool) {
	t.Helper()
	relay, d := relayed(t, seed(t))
	hosts := [2]*host{newHost(t, d[0], 1), newHost(t, d[1], 2)}
	for _, h := range hosts {
		h.begin(t)
	}
	subscribed(t, hosts, 1)
	for _, h := range hosts { // so that the relay has all its sockets
		require.True(t, h.call(t.Context()))
	}

	before := goruntime.NumGoroutine()
	relay.SetFaults(faults)
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var work sync.WaitGroup
	for _, h := range hosts {
		h.load(ctx, &work)
	}
	for ctx.Err() == nil { // the service of the first host goes and comes
		pause(ctx, 1500*time.Millisecond)
		hosts[0].current().Stop()
		hosts[0].offer(t)
	}
	work.Wait()
	relay.SetFaults(lossy.Faults{})

	subscribed(t, hosts, 1<<40)
	for i, h := range hosts {
		require.Eventually(t, func() bool { return h.call(context.Background()) }, patience, time.Millisecond)
		if failed := h.unexpected.Load(); failed != nil {
			require.NoError(t, *failed)
		}
		require.Equal(t, h.started.Load(), h.answered.Load()+h.timeouts.Load()+h.unavailable.Load()+h.untrusted.Load())
		require.Equal(t, h.timeouts.Load(), h.network.Stats().Timeouts)
		t.Logf("host %d: %d calls: %d answered, %d timed out, %d while it was not there, %d untrusted; %+v", i+1,
			h.started.Load(), h.answered.Load(), h.timeouts.Load(), h.unavailable.Load(), h.untrusted.Load(), h.network.Stats())
		require.NotZero(t, h.answered.Load())
		for _, s := range h.subs {
			// A datagram of before that comes late may look like a reboot, and make the client subscribe once more.
			require.Eventually(t, func() bool { return !exact || s.Status().State == runtime.SubscriptionActive },
				patience, time.Millisecond, "%v", h)
		}
	}
	for waited := time.Duration(0); goruntime.NumGoroutine() > before; waited += 10 * time.Millisecond {
		if waited > patience {
			stacks := make([]byte, 1<<16)
			require.FailNow(t, "goroutines are left", "%d before, %d now:\n%s", before, goruntime.NumGoroutine(),
				stacks[:goruntime.Stack(stacks, true)])
		}
		pause(t.Context(), 10*time.Millisecond)
	}
	t.Logf("relay: %+v", relay.Stats())
	if exact {
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, unaccounted(relay, hosts)) },
			patience, 20*time.Millisecond)
	}
}

// subscribed waits until both hosts are subscribed to everything, as the servers see
// it and as the values that arrive show; from is the first of them.
func subscribed(t *testing.T, hosts [2]*host, from uint64) {
	t.Helper()
	for value := from; ; value++ {
		ok := true
		for i, h := range hosts {
			other := hosts[1-i]
			other.notify(value)
			for j := range h.subs {
				ok = ok && h.last[j].Load() >= from
			}
			for _, id := range []uint16{event, field} {
				ok = ok && other.current().Subscribers(id) == 1
			}
		}
		if ok {
			return
		}
		require.Less(t, value-from, uint64(patience/(10*time.Millisecond)), "not subscribed: %v; %v", hosts[0], hosts[1])
		pause(t.Context(), 10*time.Millisecond)
	}
}

// unaccounted follows every datagram: from the counters of its sender to those of the
// relay, and on to those of its receiver.
func unaccounted(r *lossy.Relay, hosts [2]*host) (wrong []string) {
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	s := r.Stats()
	check(s.Overrun == 0, "the relay could not follow: %d", s.Overrun)
	for side, h := range hosts {
		sent, got := h.network.Stats(), hosts[1-side].network.Stats()
		data := s.Data(side)
		check(data.Waiting == 0 && data.Failed == 0, "data of host %d: %+v", side+1, data)
		check(sent.Sent == data.Received, "host %d sent %d, the relay had %d", side+1, sent.Sent, data.Received)
		check(data.Received+data.Duplicated == data.Forwarded+data.Lost(), "data of host %d: %+v", side+1, data)
		// A corrupted message may be a message and a rest, and so count twice.
		arrived := got.Received + got.Malformed + got.WrongProtocol + got.Segments + got.ReceiveDropped
		check(data.Forwarded <= arrived && arrived <= data.Forwarded+data.Corrupted,
			"%d and %d corrupted went to host %d, %d arrived", data.Forwarded, data.Corrupted, 2-side, arrived)

		discovery, heard, said := s.SD(side), hosts[1-side].network.DiscoveryStats(), h.network.DiscoveryStats()
		check(discovery.Waiting == 0 && discovery.Failed == 0, "discovery of host %d: %+v", side+1, discovery)
		check(said.Sent == discovery.Received, "host %d said %d, the relay heard %d", side+1, said.Sent, discovery.Received)
		check(discovery.Forwarded == heard.Received, "%d went to host %d, it heard %d", discovery.Forwarded, 2-side, heard.Received)
		check(heard.Malformed == 0, "host %d heard %d that were malformed", 2-side, heard.Malformed)
	}
	return wrong
}
