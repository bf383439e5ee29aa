package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/interop/faults/record"
)

// Seen is what one load saw of a scenario.
type Seen struct {
	Load      string         `json:"load"`
	Concerned bool           `json:"concerned"`
	Stream    bool           `json:"stream,omitempty"`
	Count     int            `json:"count"`           // calls or items
	Failed    int            `json:"failed"`          // calls, or ends of a stream
	Codes     map[string]int `json:"codes,omitempty"` // of the failures
	Reasons   []string       `json:"reasons,omitempty"`
	// Noticed is from the fault to the first failure, Served from the repair until
	// all was well again, Waits the longest time without an answer or item. They are
	// in milliseconds, and negative where there was none.
	Noticed float64 `json:"noticed_ms"`
	Served  float64 `json:"served_ms"`
	Waits   float64 `json:"waits_ms"`
	// Bounds are the limits of the three, in milliseconds, 0 where there is none.
	Bounds struct {
		Noticed float64 `json:"noticed_ms,omitempty"`
		Served  float64 `json:"served_ms,omitempty"`
		Waits   float64 `json:"waits_ms,omitempty"`
	} `json:"bounds"`
	Broken []string `json:"broken,omitempty"` // what does not hold
}

const none = -1

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s *Seen) broken(format string, args ...any) {
	s.Broken = append(s.Broken, fmt.Sprintf(format, args...))
}

// judge compares what a load recorded with the bounds, which are nil for a load
// that is not concerned.
func (l *loading) judge(t times, c *Concerned) *Seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &Seen{Load: l.Name, Concerned: c != nil, Stream: l.stream(), Codes: map[string]int{}, Noticed: none, Served: none, Waits: none}
	if l.stream() {
		l.seeStream(s, t, c)
	} else {
		l.seeCalls(s, t)
	}
	if s.Count == 0 && !l.Quiet && !l.Field {
		s.broken("nothing was recorded")
	}
	if c == nil {
		if s.Failed > 0 {
			s.broken("%d failed, none may: %s", s.Failed, s.failures())
		}
		return s
	}
	s.bound(c)
	return s
}

func (s *Seen) failures() string {
	return fmt.Sprintf("%v %s", s.Codes, strings.Join(s.Reasons, "; "))
}

func (s *Seen) bound(c *Concerned) {
	s.Bounds.Noticed, s.Bounds.Served, s.Bounds.Waits = ms(c.Noticed), ms(c.Served), ms(c.Waits)
	for code := range s.Codes {
		if !slices.Contains(c.Codes, code) {
			s.broken("%s is none of %v: %s", code, c.Codes, s.failures())
		}
	}
	if c.Failed != nil && s.Failed > *c.Failed {
		s.broken("%d failed, at most %d may: %s", s.Failed, *c.Failed, s.failures())
	}
	if c.Reason.re != nil && !slices.ContainsFunc(s.Reasons, c.Reason.re.MatchString) {
		s.broken("nobody was told %q: %s", c.Reason.re, s.failures())
	}
	if c.Noticed > 0 && s.Noticed == none {
		s.broken("nothing was noticed")
	}
	for _, b := range []struct {
		what         string
		value, limit float64
	}{
		{"noticed", s.Noticed, s.Bounds.Noticed},
		{"served", s.Served, s.Bounds.Served},
		{"waits", s.Waits, s.Bounds.Waits},
	} {
		if b.limit > 0 && b.value > b.limit {
			s.broken("%s after %.0f ms, the bound is %.0f ms", b.what, b.value, b.limit)
		}
	}
}

// fail counts a failure.
func (s *Seen) fail(at time.Time, code, reason string, fault time.Time) {
	s.Failed++
	s.Codes[code]++
	if reason != "" && len(s.Reasons) < maxReasons && !slices.Contains(s.Reasons, reason) {
		s.Reasons = append(s.Reasons, reason)
	}
	if after := ms(at.Sub(fault)); s.Noticed == none || after < s.Noticed {
		s.Noticed = after
	}
}

// maxReasons is how many different reasons are told.
const maxReasons = 8

func (l *loading) seeCalls(s *Seen, t times) {
	calls := slices.Clone(l.calls)
	slices.SortFunc(calls, func(a, b record.Call) int { return cmp.Compare(a.Began.UnixNano(), b.Began.UnixNano()) })
	s.Count = len(calls)
	last := -1
	for i, c := range calls {
		s.Waits = max(s.Waits, ms(c.Ended.Sub(c.Began)))
		if c.Code != record.OK {
			s.fail(c.Ended, c.Code, c.Reason, t.fault)
			last = i
		}
	}
	if last < 0 {
		return
	}
	// The first answer to a call that was made after all that failed.
	var served time.Time
	for _, c := range calls[last+1:] {
		if served.IsZero() || c.Ended.Before(served) {
			served = c.Ended
		}
	}
	if served.IsZero() {
		s.broken("it is not served again")
		return
	}
	s.Served = max(0, ms(served.Sub(t.repair)))
}
