package endpoint

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// sendQueue writes to a TCP connection. As long as the peer keeps up, send
// writes by itself; the rest of a message that the kernel does not take waits in
// a bounded queue for a goroutine that lives until the queue is empty.
type sendQueue struct {
	conn *Conn
	raw  syscall.RawConn
	work sync.WaitGroup

	mu      sync.Mutex
	pending []byte // not yet written, in order
	busy    bool   // the goroutine runs
	closed  bool
	cookie  time.Time // when the last magic cookie was written

	// The state of tryWrite, here so that it allocates nothing.
	write    func(fd uintptr) bool
	unsent   []byte
	writeErr error
}

// cookieInterval is how often a cookie is written at least while messages are
// sent; what one Write becomes on the wire is up to TCP.
const cookieInterval = 10 * time.Second

func (q *sendQueue) init(c *Conn) {
	q.conn = c
	q.write = q.writeSome
	q.raw, _ = c.conn.SyscallConn() // fails only for a nil connection
}

func (q *sendQueue) send(msg []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return net.ErrClosed
	}
	if q.conn.cfg.Cookies {
		if now := time.Now(); now.Sub(q.cookie) >= cookieInterval {
			q.cookie = now
			if err := q.put([]byte(q.conn.from.opposite().cookie())); err != nil {
				return err
			}
		}
	}
	return q.put(msg)
}

// put writes or queues b. q.mu is held.
func (q *sendQueue) put(b []byte) error {
	if q.busy {
		if len(q.pending)+len(b) > q.conn.cfg.SendQueue {
			return ErrQueueFull
		}
		q.pending = append(q.pending, b...)
		return nil
	}
	n, err := q.tryWrite(b)
	if err != nil {
		return err
	}
	if n < len(b) {
		q.pending = append(q.pending[:0], b[n:]...)
		q.busy = true
		q.work.Go(q.drain)
	}
	return nil
}

// tryWrite writes what the kernel takes without waiting, and returns how much.
func (q *sendQueue) tryWrite(b []byte) (int, error) {
	q.unsent, q.writeErr = b, nil
	err := q.raw.Write(q.write)
	n := len(b) - len(q.unsent)
	q.unsent = nil
	if q.writeErr != nil {
		err = q.writeErr
	}
	return n, err
}

func (q *sendQueue) writeSome(fd uintptr) bool {
	for len(q.unsent) > 0 {
		n, err := syscall.Write(int(fd), q.unsent)
		switch {
		case err == nil:
			q.unsent = q.unsent[n:]
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return true
		default:
			q.writeErr = err
			return true
		}
	}
	return true
}

// drain writes what is queued until nothing is left. A peer that takes nothing
// for the write timeout loses the connection.
func (q *sendQueue) drain() {
	var chunk []byte
	for {
		q.mu.Lock()
		if len(q.pending) == 0 || q.closed {
			q.busy = false
			q.mu.Unlock()
			return
		}
		chunk, q.pending = q.pending, chunk[:0]
		q.mu.Unlock()
		for rest := chunk; len(rest) > 0; {
			part := rest[:min(len(rest), 64<<10)]
			_ = q.conn.conn.SetWriteDeadline(time.Now().Add(q.conn.cfg.WriteTimeout)) // an error shows in Write
			if _, err := q.conn.conn.Write(part); err != nil {
				q.mu.Lock()
				q.closed = true
				q.mu.Unlock()
				q.conn.shut(err)
				return
			}
			rest = rest[len(part):]
		}
		_ = q.conn.conn.SetWriteDeadline(time.Time{})
	}
}

func (q *sendQueue) stop() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

func (q *sendQueue) wait() { q.work.Wait() }
