package endpoint

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"time"
)

// Defaults of a [Backoff].
const (
	DefaultBackoffFirst = 20 * time.Millisecond
	DefaultBackoffMax   = time.Second
)

// Backoff says how long to wait before the next attempt to connect: each time
// twice as long, up to a limit, and never the same on two machines. It is plain
// data; zero values stand for the defaults.
type Backoff struct {
	First    time.Duration // before the second attempt
	Max      time.Duration
	Attempts int // 0: without end
}

// Delay returns the wait after the n-th failure in a row, counted from 1, and
// false if there is to be no other attempt. random is from [0, 1); the wait
// differs by it from 3/4 to 5/4 of the nominal one.
func (b Backoff) Delay(n int, random float64) (time.Duration, bool) {
	if b.Attempts > 0 && n >= b.Attempts {
		return 0, false
	}
	d, limit := b.First, b.Max
	if d <= 0 {
		d = DefaultBackoffFirst
	}
	if limit <= 0 {
		limit = DefaultBackoffMax
	}
	for i := 1; i < n && d < limit; i++ {
		d *= 2
	}
	d = min(d, limit)
	return d - d/4 + time.Duration(random*float64(d/2)), true
}

// Redial is [DialTCP] again and again until it succeeds, ctx ends or the attempts
// of b are used up. The error is that of the last attempt.
func Redial(ctx context.Context, local, remote netip.AddrPort, cfg TCPConfig, b Backoff) (*Conn, error) {
	for n := 1; ; n++ {
		c, err := DialTCP(ctx, local, remote, cfg)
		if err == nil {
			return c, nil
		}
		wait, again := b.Delay(n, rand.Float64())
		if !again {
			return nil, err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, err
		}
	}
}
