package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/interop/wait"
)

const (
	// calmTime is how long a load must have been served to count as well.
	calmTime = 500 * time.Millisecond
	// silence is more than a stream with items every 20 ms pauses.
	silence = 250 * time.Millisecond
	// lookInterval is the time between two looks at the loads.
	lookInterval = 20 * time.Millisecond
)

// calm waits until every load is served.
func (g *Rig) calm(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("within %v", within))
	defer cancel()
	began := time.Now()
	for {
		g.mu.Lock()
		failed := g.failed
		g.mu.Unlock()
		if failed != nil {
			return failed
		}
		now := time.Now()
		var not []string
		for _, l := range g.loads {
			if why := l.uneasy(now, began); why != "" {
				not = append(not, l.Name+": "+why)
			}
		}
		if len(not) == 0 {
			return nil
		}
		if err := wait.For(ctx, lookInterval); err != nil {
			return fmt.Errorf("not all loads are served %w: %s", context.Cause(ctx), strings.Join(not, "; "))
		}
	}
}

// uneasy says why a load is not well, or nothing.
func (l *loading) uneasy(now, began time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stream() {
		return l.streamUneasy(now)
	}
	ok := false
	for i := len(l.calls) - 1; i >= 0 && now.Sub(l.calls[i].Ended) < calmTime; i-- {
		if c := l.calls[i]; c.Code != record.OK {
			return c.Code + " " + c.Reason
		}
		ok = true
	}
	switch {
	case !ok:
		return "no call is answered"
	case now.Sub(began) < calmTime:
		return "not long enough"
	}
	return ""
}

// streamUneasy wants an open stream with an item of late, or, of one that is
// quiet, any time without an end.
func (l *loading) streamUneasy(now time.Time) string {
	if len(l.turns) == 0 {
		return "no item yet"
	}
	last := l.turns[len(l.turns)-1]
	switch {
	case last.Kind == record.Ended:
		return "ended, " + last.Code + " " + last.Reason
	case l.periodic() && (last.Kind != record.Item || now.Sub(last.At) > silence):
		return "no item for " + now.Sub(last.At).Round(time.Millisecond).String()
	case l.Field && last.Kind == record.Opened && l.Program == "":
		return "no value yet"
	case l.Quiet && now.Sub(last.At) < calmTime:
		return "not long enough"
	}
	return ""
}
