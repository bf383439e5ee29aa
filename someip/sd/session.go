package sd

import (
	"hash/maphash"
	"time"

	"carisma.dev/gateway/someip"
)

// counter makes the session ids of one path that we send on: multicast, or
// unicast to one peer (RB-1).
type counter struct {
	session uint16
	wrapped bool
}

// next returns the session of the next message, and its reboot flag: set until
// this counter has wrapped, then never again (RB-2, case 47).
func (c *counter) next() (uint16, Flags) {
	if c.session == 0xFFFF {
		c.wrapped = true
	}
	c.session = someip.NextSession(c.session)
	if c.wrapped {
		return c.session, 0
	}
	return c.session, FlagReboot
}

// path is what a peer showed of one of its two ways to us. Multicast and unicast
// are never compared with each other (RB-5, case 52).
type path struct {
	seen    bool
	flag    bool
	session uint16
	// restartExpected: the other path showed a restart, so the next reset here is
	// the same one (RB-6).
	restartExpected bool
	recent          [4]fingerprint // of the last messages, a ring
	at              int
}

type fingerprint struct {
	hash uint64
	when time.Time
}

// verdict is what the session of a message says about its sender.
type verdict uint8

const (
	verdictContinues   verdict = iota
	verdictRebooted            // the sender restarted (RB-4)
	verdictSameRestart         // it restarted, which the other path has shown already
)

// observe takes the session and flags of a message that arrived, and returns
// what they say and how many messages must have been lost before it.
func (p *path) observe(session uint16, flags Flags) (v verdict, lost uint16) {
	flag := flags&FlagReboot != 0
	old := *p
	p.seen, p.flag = true, flag
	if session != 0 { // 0 breaks the rules: there is nothing to compare
		p.session = session
	}
	switch {
	case !old.seen: // the first message never counts (case 53)
		return verdictContinues, 0
	case !old.flag && flag,
		old.flag && flag && session != 0 && old.session >= session:
		p.restartExpected = false
		if old.restartExpected {
			return verdictSameRestart, 0
		}
		return verdictRebooted, 0
	}
	p.restartExpected = false
	if expected := someip.NextSession(old.session); session > expected {
		lost = session - expected
	}
	return verdictContinues, lost
}

// duplicate reports whether the very same bytes arrived on this path less than
// window ago (RB-7), and remembers them.
func (p *path) duplicate(now time.Time, hash uint64, window time.Duration) bool {
	if window <= 0 {
		return false
	}
	for _, f := range p.recent {
		if f.hash == hash && !f.when.IsZero() && now.Sub(f.when) < window {
			return true
		}
	}
	p.recent[p.at] = fingerprint{hash, now}
	p.at = (p.at + 1) % len(p.recent)
	return false
}

// hash is for comparing messages received by this process.
func (m *Machine) hash(b []byte) uint64 { return maphash.Bytes(m.seed, b) }
