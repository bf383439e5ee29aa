package tp

import (
	"slices"
	"time"

	"carisma.dev/gateway/someip"
)

// assembly is a message of which segments are missing. It holds what was received
// and no more: a segment far behind the others takes the memory of a near one
// (TP-9).
type assembly struct {
	key     key
	session uint16
	header  someip.Header // to be; the return code is that of the last segment (TP-6)

	buf   []byte  // room for the header, then the payload without a gap from byte 0 on
	ahead []chunk // what came behind a gap, last one first
	slab  []byte  // the bytes of these
	ended bool    // the last segment came
	total int     // length of the payload if it did
	reach int     // end of the segment that reached furthest

	owner      *peer
	deadline   time.Time
	prev, next *assembly // in the order of deadlines
}

// chunk is a stretch of payload in the slab.
type chunk struct {
	at, pos, n int
}

func (c chunk) end() int { return c.at + c.n }

// memory returns the bytes that the assembly holds.
func (a *assembly) memory() int {
	const chunkSize = 24
	return cap(a.buf) + cap(a.slab) + cap(a.ahead)*chunkSize
}

// received returns the bytes of payload that have come.
func (a *assembly) received() int {
	n := a.filled()
	for _, c := range a.ahead {
		n += c.n
	}
	return n
}

// filled returns the end of the payload that has no gap.
func (a *assembly) filled() int { return len(a.buf) - someip.HeaderSize }

// begun reports whether byte 0 has come.
func (a *assembly) begun() bool { return a.filled() > 0 }

func (a *assembly) complete() bool { return a.ended && a.filled() == a.total }

// bound notes what a segment says about the end of the message and reports
// whether that agrees with what others said.
func (a *assembly) bound(at, n int, more bool) bool {
	end := at + n
	switch {
	case a.ended:
		return end < a.total && more || end == a.total && !more
	case !more:
		if a.reach >= end { // more was to follow there
			return false
		}
		a.ended, a.total = true, end
	}
	a.reach = max(a.reach, end)
	return true
}

// add takes the bytes of data that are missing and returns their number.
func (a *assembly) add(at int, data []byte) (added int) {
	skip := func(to int) {
		n := min(to-at, len(data))
		at, data = at+n, data[n:]
	}
	if a.filled() > at {
		skip(a.filled())
	}
	for len(data) > 0 {
		// ahead[:i] are behind byte at.
		i, _ := slices.BinarySearchFunc(a.ahead, at, func(c chunk, at int) int {
			if c.at > at {
				return -1
			}
			return 1
		})
		if i < len(a.ahead) && a.ahead[i].end() > at {
			skip(a.ahead[i].end())
			continue
		}
		n := len(data)
		if i > 0 {
			n = min(n, a.ahead[i-1].at-at)
		}
		if at == a.filled() {
			a.buf = appendDoubling(a.buf, data[:n])
		} else {
			a.ahead = slices.Insert(a.ahead, i, chunk{at: at, pos: len(a.slab), n: n})
			a.slab = appendDoubling(a.slab, data[:n])
		}
		added += n
		skip(at + n)
	}
	a.close()
	return added
}

// close moves what no longer is behind a gap.
func (a *assembly) close() {
	for last := len(a.ahead) - 1; last >= 0 && a.ahead[last].at == a.filled(); last-- {
		c := a.ahead[last]
		a.buf = appendDoubling(a.buf, a.slab[c.pos:c.pos+c.n])
		a.ahead = a.ahead[:last]
	}
	if len(a.ahead) == 0 {
		a.slab = a.slab[:0]
	}
}

// appendDoubling is append that doubles also what is large: a message that grows
// to megabytes is copied less often.
func appendDoubling(b, more []byte) []byte {
	if cap(b)-len(b) < len(more) {
		b = slices.Grow(b, max(len(b), len(more)))
	}
	return append(b, more...)
}

// message returns the whole message of a complete assembly (TP-6).
func (a *assembly) message() []byte {
	a.header.Length = uint32(someip.HeaderSize - 8 + a.total)
	a.header.Append(a.buf[:0])
	return a.buf[:len(a.buf):len(a.buf)]
}

// reset empties the assembly and keeps its memory.
func (a *assembly) reset() {
	*a = assembly{buf: append(a.buf[:0], make([]byte, someip.HeaderSize)...), ahead: a.ahead[:0], slab: a.slab[:0]}
}
