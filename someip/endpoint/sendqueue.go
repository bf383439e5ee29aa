package endpoint

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendQueue writes to a TCP connection. As long as the peer keeps up, send
// writes by itself; the rest of a message that the kernel does not take waits in
// a bounded queue for a goroutine that lives until the queue is empty. What goes
// through a [StreamLayer] or [Streams] is always written by that goroutine, because they
// may block.
type sendQueue struct {
	conn *Conn
	raw  syscall.RawConn
	work sync.WaitGroup

	mu      sync.Mutex
	pending []byte        // not yet written, in order
	busy    bool          // the goroutine runs
	closed  bool          // nothing more is taken
	idle    chan struct{} // if not nil, closed once nothing is pending any more

	// The state of tryWrite, here so that it allocates nothing.
	write    func(fd uintptr) bool
	parts    [2][]byte // cookie and message, as far as unsent
	vectors  [2]unix.Iovec
	writeErr error
	cookie   []byte // nil: none are sent
}

func (q *sendQueue) init(c *Conn) {
	q.conn = c
	q.write = q.writeSome
	if c.tcp != nil {
		q.raw, _ = c.tcp.SyscallConn() // fails only for a nil connection
	}
	if c.cfg.Cookies {
		q.cookie = []byte(c.from.opposite().cookie())
	}
}

// send writes or queues msg. A magic cookie goes before it where a TCP segment
// starts as far as that can be known here: with each write to the kernel.
func (q *sendQueue) send(msg []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return net.ErrClosed
	case q.busy && len(q.pending)+len(q.cookie)+len(msg) > q.conn.cfg.SendQueue:
		return ErrQueueFull
	case q.busy || q.conn.layered():
		if len(q.pending) == 0 {
			q.pending = append(q.pending, q.cookie...)
		}
		q.pending = append(q.pending, msg...)
	default:
		if err := q.tryWrite(msg); err != nil {
			return err
		}
	}
	if len(q.pending) > 0 && !q.busy {
		q.busy = true
		q.work.Go(q.drain)
	}
	return nil
}

// tryWrite writes what the kernel takes without waiting; the rest is pending.
func (q *sendQueue) tryWrite(msg []byte) error {
	q.parts, q.writeErr = [2][]byte{q.cookie, msg}, nil
	err := q.raw.Write(q.write)
	if q.writeErr != nil {
		err = q.writeErr
	}
	if err == nil {
		for _, p := range q.parts {
			q.pending = append(q.pending, p...)
		}
	}
	q.parts, q.vectors = [2][]byte{}, [2]unix.Iovec{}
	return err
}

func (q *sendQueue) writeSome(fd uintptr) bool {
	for len(q.parts[1]) > 0 {
		n, err := q.writeParts(int(fd))
		switch {
		case err == nil:
			head := min(n, len(q.parts[0]))
			q.parts[0] = q.parts[0][head:]
			q.parts[1] = q.parts[1][n-head:]
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

func (q *sendQueue) writeParts(fd int) (int, error) {
	if len(q.parts[0]) == 0 {
		return syscall.Write(fd, q.parts[1])
	}
	for i, p := range q.parts {
		q.vectors[i].Base = first(p)
		q.vectors[i].SetLen(len(p))
	}
	vectors := unsafe.Pointer(&q.vectors) //nolint:gosec // Writev of package unix allocates
	n, _, errno := syscall.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(vectors), uintptr(len(q.vectors)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// drain writes what is queued until nothing is left. A peer that takes nothing
// for the write timeout loses the connection.
func (q *sendQueue) drain() {
	var chunk []byte
	for {
		q.mu.Lock()
		if cap(chunk) > keepSpace {
			chunk = nil
		}
		if len(q.pending) == 0 || q.conn.ended() {
			q.stopped()
			q.mu.Unlock()
			return
		}
		chunk, q.pending = q.pending, chunk[:0]
		q.mu.Unlock()
		for rest := chunk; len(rest) > 0; {
			part := rest[:min(len(rest), 64<<10)]
			_ = q.conn.stream.SetWriteDeadline(time.Now().Add(q.conn.cfg.WriteTimeout)) // an error shows in Write
			if _, err := q.conn.stream.Write(part); err != nil {
				q.mu.Lock()
				q.closed = true
				q.stopped()
				q.mu.Unlock()
				q.conn.shut(err)
				return
			}
			rest = rest[len(part):]
		}
		_ = q.conn.stream.SetWriteDeadline(time.Time{})
	}
}

// stopped says that the goroutine ends. q.mu is held.
func (q *sendQueue) stopped() {
	q.busy = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// finish takes nothing more, and returns a channel that is closed once all was
// written or cannot be written any more.
func (q *sendQueue) finish() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	idle := make(chan struct{})
	switch {
	case !q.busy:
		close(idle)
	case q.idle != nil:
		return q.idle
	default:
		q.idle = idle
	}
	return idle
}

func (q *sendQueue) stop() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

func (q *sendQueue) wait() { q.work.Wait() }
