package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"carisma.dev/gateway/interop/bench/benchv1"
)

// ticks returns the rate of a plain gRPC stream.
func (c *client) ticks(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const count = 200000
	stream, err := benchv1.NewPlainClient(c.conn).Ticks(ctx, &benchv1.PlainTicksRequest{Count: count})
	if err != nil {
		return 0, err
	}
	if _, err := stream.Recv(); err != nil {
		return 0, err
	}
	began := time.Now()
	for range count - 1 {
		if _, err := stream.Recv(); err != nil {
			return 0, err
		}
	}
	return (count - 1) / time.Since(began).Seconds(), nil
}

// watcher finds the rate of events at which one watcher loses none.
type watcher struct {
	*client

	// over is the slowest flood that was too fast.
	over flood
}

// flood is what came of events sent at a rate.
type flood struct {
	asked   float64 // events a second
	sent    int
	arrived int
	gaps    int     // lost, as the items told
	rate    float64 // between the first and the last that arrived
}

func (f flood) lost() int { return f.sent - f.arrived }

// The search for the rate: from slowest in steps, each flood as long as floodTime.
const (
	slowest   = 10000
	step      = 1.15
	floodTime = 400 * time.Millisecond
	tries     = 2 // of a rate: what else a machine does may cost events once
	silence   = 300 * time.Millisecond
)

// sharing is the instance whose events share datagrams, so that the network's
// system calls are not what is measured.
const sharing = "shared"

// lossless returns the highest rate at which all events of a flood arrived.
func (w *watcher) lossless(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithCancel(toInstance(ctx, sharing))
	defer cancel()
	stub := benchv1.NewEchoClient(w.conn)
	stream, err := stub.WatchTick(ctx, &benchv1.EchoWatchTickRequest{})
	if err != nil {
		return 0, err
	}
	var t tally
	go func() {
		for {
			item, err := stream.Recv()
			t.add(item, err)
			if err != nil {
				return
			}
		}
	}()
	one := func(rate float64, count int) (flood, error) {
		t.reset()
		if _, err := stub.Flood(ctx, &benchv1.EchoFloodRequest{Count: uint32(count), Size: 8, Rate: uint32(rate)}); err != nil {
			return flood{}, err
		}
		return t.wait(ctx, flood{asked: rate, sent: count})
	}
	// The subscription takes a moment.
	if err := retry(ctx, func(context.Context) error {
		f, err := one(slowest, 100)
		if err == nil && f.lost() > 0 {
			err = fmt.Errorf("%d of the first events were lost", f.lost())
		}
		return err
	}); err != nil {
		return 0, err
	}
	best := 0.0
	for rate := float64(slowest); ; rate *= step {
		var f flood
		for range tries {
			if f, err = one(rate, int(rate*floodTime.Seconds())); err != nil {
				return 0, err
			}
			if f.lost() == 0 {
				break
			}
		}
		switch {
		case f.lost() > 0 && best == 0:
			return 0, errors.New("events are lost at any rate")
		case f.lost() > 0:
			w.over = f
			return best, nil
		case f.rate < 0.8*rate && f.rate < best: // the ECU sends no faster
			return best, nil
		}
		best = max(best, f.rate)
	}
}

func (w *watcher) note() string {
	if w.over.sent == 0 {
		return ""
	}
	return fmt.Sprintf("of %d at %.0f/s %d are lost, %d of them told as gaps", w.over.sent, w.over.asked, w.over.lost(), w.over.gaps)
}

// tally counts items on one goroutine and tells another.
type tally struct {
	mu          sync.Mutex
	first, last time.Time
	arrived     int
	gaps        int
	number      uint32 // of the last
	err         error
}

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived, t.gaps, t.number, t.last = 0, 0, 0, time.Now()
}

func (t *tally) add(item *benchv1.EchoWatchTickResponse, err error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err = err; err != nil {
		return
	}
	if t.arrived == 0 {
		t.first = now
	}
	t.last = now
	t.arrived++
	t.gaps += int(item.GetMeta().GetGap())
	t.number = item.GetNumber()
}

// wait waits for the events of a flood, until none comes any more.
func (t *tally) wait(ctx context.Context, f flood) (flood, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		err, ended := t.err, t.arrived > 0 && t.number == uint32(f.sent-1) || time.Since(t.last) > silence
		f.arrived, f.gaps, f.rate = t.arrived, t.gaps, float64(t.arrived-1)/t.last.Sub(t.first).Seconds()
		t.mu.Unlock()
		if err != nil || ended {
			return f, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
}
