package endpoint

import (
	"hash/maphash"
	"sync"
)

// echoCount is how many messages an [Echoes] remembers: more than are under way
// between a socket and its own echo.
const echoCount = 64

// Echoes tells the echo of our own multicasts from what another stack sends from
// the same address, which is how a stack that was started later, and shares the port
// as vsomeip does, is noticed (RB-9): service discovery hears what seems to come
// from itself. Ask [UDP.Alone] then who it is. The zero Echoes is ready to use, by
// several goroutines at once.
type Echoes struct {
	mu   sync.Mutex
	seed maphash.Seed
	sums [echoCount]uint64
	n    int // messages so far
}

// Sent remembers a message. Call it before the message is sent.
func (e *Echoes) Sent(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n == 0 {
		e.seed = maphash.MakeSeed()
	}
	e.sums[e.n%echoCount] = maphash.Bytes(e.seed, b)
	e.n++
}

// Own reports whether a message that came from our address is one of the last that
// we sent.
func (e *Echoes) Own(b []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n == 0 {
		return false
	}
	sum := maphash.Bytes(e.seed, b)
	for i := range min(e.n, echoCount) {
		if e.sums[i] == sum {
			return true
		}
	}
	return false
}
