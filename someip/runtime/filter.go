package runtime

import (
	"sync"
	"time"
)

// FilterConfig thins out the notifications of one event for one subscription, on
// receipt, as vsomeip's "debounce" does (2.1). One passes if it is the first since the
// subscription was made, or anything here lets it.
type FilterConfig struct {
	// OnChange lets pass what differs from the notification before, whether that
	// passed or not.
	OnChange bool
	// Ignore are bits that make no difference, by the index of their byte. Payloads
	// of another length always differ.
	Ignore map[int]byte
	// Interval lets one pass when so much time has gone by since one last did by it.
	// 0: none.
	Interval time.Duration
	// ChangeResetsInterval lets the interval begin anew with one that passed by OnChange.
	ChangeResetsInterval bool
}

// filter is a FilterConfig at work.
type filter struct {
	FilterConfig

	mu    sync.Mutex // over TCP and over UDP the event comes on goroutines of their own
	begun bool       // there was a notification before
	last  []byte     // its payload
	from  time.Time  // where the interval began
}

// passes reports whether a notification is let through.
func (f *filter) passes(n Notification, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Others may have subscribed before, for whom the initial one came then.
	first := n.Initial || !f.begun
	f.begun = true
	changed := first
	if f.OnChange {
		changed = changed || f.differs(n.Payload)
		f.last = append(f.last[:0], n.Payload...)
	}
	elapsed := first || f.Interval > 0 && now.Sub(f.from) >= f.Interval
	if elapsed || changed && f.ChangeResetsInterval {
		f.from = now
	}
	return changed || elapsed
}

func (f *filter) differs(payload []byte) bool {
	if len(payload) != len(f.last) {
		return true
	}
	for i, b := range payload {
		if b != f.last[i] && (b^f.last[i])&^f.Ignore[i] != 0 {
			return true
		}
	}
	return false
}

func newFilters(configs map[uint16]FilterConfig) map[uint16]*filter {
	if len(configs) == 0 {
		return nil
	}
	filters := make(map[uint16]*filter, len(configs))
	for id, c := range configs {
		filters[id] = &filter{FilterConfig: c}
	}
	return filters
}
