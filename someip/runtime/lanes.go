package runtime

import (
	"net"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/tp"
)

// lanes send segmented messages. What the receiver could not tell apart goes one
// after the other (TP-5), with the separation time between segments; everything
// else passes by (TP-3).
type lanes struct {
	mu      sync.Mutex
	busy    map[laneKey]*lane
	waiting int // bytes of all messages that wait
	closed  bool
	stop    chan struct{}
	work    sync.WaitGroup
}

// maxWaiting bounds the messages that wait for their turn, in bytes.
const maxWaiting = 32 << 20

// laneKey is what a receiver tells messages apart by while they are under way.
type laneKey struct {
	track
	service, method uint16
	client          uint16
	major           uint8
	kind            someip.MessageType
}

// lane holds the messages that wait while another is sent.
type lane struct {
	queue []*[]byte
}

func (l *lanes) init() {
	l.busy, l.stop = make(map[laneKey]*lane), make(chan struct{})
}

// send sends the message b, of a rule with a separation time only its first
// segment at once. It fails with [endpoint.ErrQueueFull] when too much waits. It
// does not keep b.
func (l *lanes) send(tr track, rule tp.Rule, b []byte) error {
	m, seg, err := segmenter(rule, b)
	if err != nil {
		return err
	}
	key := laneKey{tr, m.Service, m.Method, m.Client, m.InterfaceVersion, m.Type}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	if ln := l.busy[key]; ln != nil {
		defer l.mu.Unlock()
		if l.waiting+len(b) > maxWaiting {
			return endpoint.ErrQueueFull
		}
		l.waiting += len(b)
		ln.queue = append(ln.queue, copied(b))
		return nil
	}
	if seg.Segments() == 1 { // TP-3: fits a datagram
		l.mu.Unlock()
		return tr.socket.Send(tr.to, b)
	}
	ln := new(lane)
	l.busy[key] = ln
	l.mu.Unlock()

	if rule.Separation == 0 {
		err = burst(tr, &seg)
		l.leave(key, rule)
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	*buf, _ = seg.Append((*buf)[:0])
	if err = tr.socket.Send(tr.to, *buf); err != nil {
		l.leave(key, rule)
		return err
	}
	l.goOn(key, rule, copied(b), seg.Segments())
	return nil
}

// bursts hold the datagrams of a burst.
var bursts = sync.Pool{New: func() any { return new([burstSize]endpoint.Datagram) }}

// burstSize is how many segments go with one system call.
const burstSize = 16

// burst sends the segments that are left as fast as it goes.
func burst(tr track, seg *tp.Segmenter) (err error) {
	batch := bursts.Get().(*[burstSize]endpoint.Datagram)
	buf := buffers.Get().(*[]byte)
	defer func() {
		clear(batch[:])
		bursts.Put(batch)
		release(buf)
	}()
	for more := true; more && err == nil; {
		*buf = (*buf)[:0]
		var ends [burstSize]int
		n := 0
		for ; more && n < burstSize; n++ {
			*buf, more = seg.Append(*buf)
			ends[n] = len(*buf)
		}
		for i, start := 0, 0; i < n; i++ {
			batch[i] = endpoint.Datagram{To: tr.to, Data: (*buf)[start:ends[i]]}
			start = ends[i]
		}
		_, err = tr.socket.SendBatch(batch[:n])
	}
	return err
}

// segmenter returns the segmenter of an encoded message.
func segmenter(rule tp.Rule, b []byte) (someip.Message, tp.Segmenter, error) {
	m, _, err := someip.ParseMessage(b)
	if err != nil {
		return m, tp.Segmenter{}, err
	}
	seg, err := rule.Segment(m)
	return m, seg, err
}

// goOn lets a goroutine send the segments that are left of a message.
func (l *lanes) goOn(key laneKey, rule tp.Rule, b *[]byte, left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.work.Go(func() { l.run(key, rule, b, left) })
	}
}

// leave gives a lane up, or to the messages that came meanwhile.
func (l *lanes) leave(key laneKey, rule tp.Rule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.take(key); b != nil {
		l.work.Go(func() { l.run(key, rule, b, 0) })
	}
}

// take returns the next message of a lane, which ends if there is none. l.mu is held.
func (l *lanes) take(key laneKey) *[]byte {
	ln := l.busy[key]
	if l.closed || len(ln.queue) == 0 {
		delete(l.busy, key)
		return nil
	}
	b := ln.queue[0]
	ln.queue = ln.queue[1:]
	l.waiting -= len(*b)
	return b
}

// run sends a message, of which so many segments are left (0: all), and those that
// wait behind it.
func (l *lanes) run(key laneKey, rule tp.Rule, b *[]byte, left int) {
	buf := buffers.Get().(*[]byte)
	defer release(buf)
	pause := time.NewTimer(rule.Separation)
	defer pause.Stop()
	for b != nil {
		_, seg, err := segmenter(rule, *b)
		for skip := seg.Segments() - left; left > 0 && skip > 0; skip-- {
			*buf, _ = seg.Append((*buf)[:0])
		}
		if err == nil && rule.Separation == 0 {
			_ = burst(key.track, &seg) // the rest of a message that failed is of no use
		}
		for more := err == nil && rule.Separation > 0; more && err == nil; {
			select {
			case <-pause.C:
			case <-l.stop:
				release(b)
				return
			}
			pause.Reset(rule.Separation)
			*buf, more = seg.Append((*buf)[:0])
			err = key.socket.Send(key.to, *buf)
		}
		release(b)
		left = 0
		l.mu.Lock()
		b = l.take(key)
		l.mu.Unlock()
	}
}

// close ends the lanes; what waits is lost.
func (l *lanes) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.stop)
	}
	l.mu.Unlock()
	l.work.Wait()
}

func copied(b []byte) *[]byte {
	p := buffers.Get().(*[]byte)
	*p = append((*p)[:0], b...)
	return p
}
