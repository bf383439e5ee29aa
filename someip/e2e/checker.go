package e2e

import "carisma.dev/gateway/someip"

// Checker judges the E2E headers of one data stream (12.4).
type Checker struct {
	format
	maxDelta uint64
	strict   bool

	seen      bool   // a correct message was checked
	reference uint32 // its counter: what the next one is compared with
	last      Result
}

// NewChecker returns a checker that accepts any counter in the first message.
func NewChecker(c Config) (*Checker, error) {
	f, err := newFormat(c)
	if err != nil {
		return nil, err
	}
	max := uint64(c.MaxDelta)
	if max == 0 {
		max = f.modulo / 2
	}
	return &Checker{format: f, maxDelta: max, strict: c.Strict}, nil
}

// Check judges data with the E2E header at Offset. Whatever data holds, nothing
// beyond its end is read (case 110).
func (c *Checker) Check(data []byte) Result { return c.check(data, c.offset, 0) }

// CheckMessage judges a whole SOME/IP message, reassembled if it was segmented.
func (c *Checker) CheckMessage(msg []byte) Result {
	if len(msg) < someip.HeaderSize {
		return c.fail(len(msg), ErrShort)
	}
	return c.check(msg[c.start:], c.inMessage(), c.start)
}

// NoData records that no message came in the cycle in which one was due. It
// changes nothing but Last.
func (c *Checker) NoData() Result {
	c.last = Result{}
	return c.last
}

// Last returns the latest result, NoNewData before the first.
func (c *Checker) Last() Result { return c.last }

// Reset forgets the counter: the sender has restarted.
func (c *Checker) Reset() { c.seen, c.last = false, Result{} }

// Strip returns the payload of a message without its E2E header, nil if it is too
// short to have one. The result is a view; if there are bytes ahead of the header
// they are moved over it, so that the payload is changed.
func (c *Checker) Strip(payload []byte) []byte {
	if len(payload)-c.offset < c.size {
		return nil
	}
	copy(payload[c.size:], payload[:c.offset])
	return payload[c.size:]
}

func (c *Checker) check(data []byte, at, base int) Result {
	if err := c.fits(len(data), at); err != nil {
		return c.fail(base+len(data), err)
	}
	counter, offset, err := c.get(data, at)
	if err != nil {
		return c.fail(base+at+offset, err)
	}
	c.last = c.judge(counter)
	return c.last
}

func (c *Checker) fail(offset int, reason error) Result {
	c.last = Result{Status: Error, Err: &someip.ParseError{Offset: offset, Reason: reason}}
	return c.last
}

// judge compares the counter of a correct message with the reference.
func (c *Checker) judge(counter uint32) Result {
	delta := (uint64(counter) + c.modulo - uint64(c.reference)) % c.modulo
	r := Result{Status: OK, Counter: counter}
	switch {
	case !c.seen || delta == 1:
	case delta == 0:
		r.Status = Repeated
	case delta <= c.maxDelta:
		r.Status, r.Lost = OKSomeLost, uint32(delta-1)
	default:
		r.Status = WrongSequence
	}
	if r.Status != WrongSequence || !c.strict {
		c.seen, c.reference = true, counter
	}
	return r
}
