package runtime

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
)

// guard protects the messages of one method or event that are sent, and checks
// those that are received.
type guard struct {
	cfg  e2e.Config
	drop bool
	size int // of the E2E header

	mu         sync.Mutex
	protectors map[party]*e2e.Protector
	checkers   map[party]*e2e.Checker
}

// party tells apart the streams of a method: those of each client. An event has
// one stream, of the zero party.
type party struct {
	peer   netip.AddrPort // at the server
	client uint16
}

// maxParties bounds the streams of one method that are remembered. A client too
// many takes the place of another, which then counts as new.
const maxParties = 1024

func newGuard(cfg e2e.Config, drop bool) *guard {
	return &guard{
		cfg: cfg, drop: drop, size: cfg.Profile.HeaderSize(),
		protectors: make(map[party]*e2e.Protector),
		checkers:   make(map[party]*e2e.Checker),
	}
}

// stream returns the state of a stream. g.mu is held.
func stream[T any](m map[party]T, p party, make func(e2e.Config) (T, error), cfg e2e.Config) T {
	s, ok := m[p]
	if ok {
		return s
	}
	if len(m) >= maxParties {
		for other := range m {
			delete(m, other)
			break
		}
	}
	s, _ = make(cfg) // the configuration was validated
	m[p] = s
	return s
}

// lock is to be held while messages are encoded and sent: the order of their
// counters is that on the network.
func (t *traits) lock() {
	if t != nil && t.guard != nil {
		t.guard.mu.Lock()
	}
}

func (t *traits) unlock() {
	if t != nil && t.guard != nil {
		t.guard.mu.Unlock()
	}
}

// append appends the message to b, protected if its messages are. t is locked.
func (t *traits) append(b []byte, p party, m someip.Message) ([]byte, error) {
	if t == nil || t.guard == nil {
		return m.Append(b), nil
	}
	g := t.guard
	b, err := stream(g.protectors, p, e2e.NewProtector, g.cfg).AppendMessage(b, m)
	if errors.Is(err, e2e.ErrLong) {
		err = ErrTooLarge
	}
	return b, err
}

// check judges the message m, whose bytes are raw, removes the E2E header from its
// payload and reports whether it is to be delivered.
func (g *guard) check(p party, raw []byte, m *someip.Message, n *Network) (e2e.Result, bool) {
	g.mu.Lock()
	c := stream(g.checkers, p, e2e.NewChecker, g.cfg)
	res := c.CheckMessage(raw)
	if rest := c.Strip(m.Payload); rest != nil {
		m.Payload = rest
	}
	g.mu.Unlock()
	n.stats.e2e[res.Status].Add(1)
	if g.drop && !res.Usable() {
		n.stats.e2eDropped.Add(1)
		return res, false
	}
	return res, true
}

func (g *guard) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.checkers)
}

// E2EError says that an answer came and failed its E2E check, for a method whose
// deployment drops such.
type E2EError struct {
	Result e2e.Result
}

// Error implements error.
func (e *E2EError) Error() string {
	text := fmt.Sprintf("runtime: answer failed its E2E check: %v", e.Result.Status)
	if e.Result.Err != nil {
		text += ": " + e.Result.Err.Error()
	}
	return text
}

// Unwrap returns what the checker said.
func (e *E2EError) Unwrap() error { return e.Result.Err }
