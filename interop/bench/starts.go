package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/vehicles/run"
)

// Start is how long it takes until an ECU can be used, in milliseconds: medians
// over its starts. The ECU is a vsomeip service, and all wait for the same starts.
type Start struct {
	Who string `json:"who"`
	// Call is the time from the start of the process to the first call answered.
	Call float64 `json:"call_ms"`
	// Event is the time from the start of a process, whose predecessor was killed,
	// to its first event.
	Event float64 `json:"event_ms"`
	// What it took more than vsomeip did at the same start.
	CallMore  float64 `json:"call_more_ms"`
	EventMore float64 `json:"event_more_ms"`
}

// startRounds are the starts for each round of other measurements: the ECU and
// vsomeip wait random times.
const startRounds = 7

// lived is how long the ECU was there when it is killed.
const lived = 500 * time.Millisecond

// waiter waits for the ECU, all the time.
type waiter interface {
	// answered returns when the first call was answered since the time given.
	answered(ctx context.Context, since int64) (int64, error)
	// event returns when the first event came since the time given.
	event(ctx context.Context, since int64) (int64, error)
	// gone returns once the ECU cannot be used any more.
	gone(ctx context.Context) error
}

// starts measures the time from the start of an ECU's process until it can be used:
// by a vsomeip client, through the gateway, and through two Envoys.
func (o Options) starts(ctx context.Context, r *run.Runner, result *Result) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &clients{r: r}
	defer func() { err = errors.Join(err, c.close()) }()
	near, far := c.dial(rear, gatewaySocket(r)), c.dial(center, r.Egress(center).String())
	if c.err != nil {
		return c.err
	}
	for _, path := range []*client{near, far} {
		if err := retry(ctx, func(ctx context.Context) error { return path.call(ctx, "own") }); err != nil {
			return err
		}
	}
	vs, err := o.waitOnVsomeip(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, vs.close()) }()
	ways := []struct {
		who string
		waiter
	}{
		{"vsomeip client", vs},
		{"gRPC client → gateway", near.poll(ctx, time.Millisecond)},
		{"gRPC client → Envoy → Envoy → gateway", far.poll(ctx, 2*time.Millisecond)},
	}
	calls, events := make([][]float64, len(ways)), make([][]float64, len(ways))
	ecu := r.Process(starting)
	for round := range o.Rounds * startRounds {
		all := make([]waiter, len(ways))
		for i, w := range ways {
			all[i] = w
		}
		if err := oneStart(ctx, ecu, all, calls, events); err != nil {
			return fmt.Errorf("start %d: %w", round+1, err)
		}
		fmt.Fprintf(o.Progress, "start %2d  first call", round+1)
		for i := range ways {
			fmt.Fprintf(o.Progress, " %6.1f", calls[i][round])
		}
		fmt.Fprint(o.Progress, "  first event")
		for i := range ways {
			fmt.Fprintf(o.Progress, " %6.1f", events[i][round])
		}
		fmt.Fprintln(o.Progress, " ms")
	}
	for i, w := range ways {
		result.Starts = append(result.Starts, Start{
			Who: w.who, Call: median(calls[i]), Event: median(events[i]),
			CallMore: median(differences(calls[i], calls[0])), EventMore: median(differences(events[i], events[0])),
		})
	}
	for _, s := range result.Starts[1:] {
		result.Aims.AtMost(s.Who+": ECU start → first call, ms more than vsomeip", s.CallMore, 20)
		result.Aims.AtMost(s.Who+": ECU killed, started → first event, ms more than vsomeip", s.EventMore, 20)
	}
	return nil
}

// oneStart starts the ECU, kills it, starts it again and stops it.
func oneStart(ctx context.Context, ecu *run.Process, all []waiter, calls, events [][]float64) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	began := monotonic()
	if err := ecu.Start(); err != nil {
		return err
	}
	took, err := together(ctx, all, began, waiter.answered)
	if err != nil {
		return fmt.Errorf("first call: %w", err)
	}
	// All watch before it is killed.
	if _, err := together(ctx, all, began, waiter.event); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	// The first messages of one that is back the next moment are those of its
	// predecessor to the byte, and pass for duplicates.
	if err := wait.For(ctx, lived); err != nil {
		return err
	}
	if err := ecu.Kill(); err != nil {
		return err
	}
	began = monotonic()
	if err := ecu.Start(); err != nil {
		return err
	}
	came, err := together(ctx, all, began, waiter.event)
	if err != nil {
		return fmt.Errorf("first event after it was killed: %w", err)
	}
	for i := range all {
		calls[i], events[i] = append(calls[i], took[i]), append(events[i], came[i])
	}
	if err := ecu.Stop(); err != nil {
		return err
	}
	for _, w := range all {
		if err := w.gone(ctx); err != nil {
			return fmt.Errorf("end of the ECU: %w", err)
		}
	}
	return nil
}

// together has all wait, and returns how long each took, in milliseconds.
func together(ctx context.Context, all []waiter, since int64, until func(waiter, context.Context, int64) (int64, error)) ([]float64, error) {
	took := make([]float64, len(all))
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, w := range all {
		work.Go(func() {
			at, err := until(w, ctx, since)
			took[i], errs[i] = float64(at-since)/1e6, err
		})
	}
	work.Wait()
	return took, errors.Join(errs...)
}

func differences(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// monotonic is the time of the clock that all processes share.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it never fails on Linux
	return t.Nano()
}
