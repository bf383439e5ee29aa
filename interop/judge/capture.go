package judge

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// receiveBuffer is asked of the kernel, so that a busy machine loses no frame.
const receiveBuffer = 32 << 20

// Capture records what a network device carries. It ends with Stop.
type Capture struct {
	socket *os.File
	out    *os.File
	done   chan error
	frames int
}

// Start records the frames of a device, both directions, into a new pcap file.
// When it returns, the recording has begun. The socket is made by a function
// given to do, which runs it where the device is: [Here], [InNamespaceOf] or the
// Do of a simulated host. It needs the right to open packet sockets there.
func Start(file, device string, do func(func() error) error) (*Capture, error) {
	var socket *os.File
	err := do(func() (err error) {
		socket, err = packetSocket(device)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("capture on %s: %w", device, err)
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	c := &Capture{socket: socket, out: out, done: make(chan error, 1)}
	go func() { c.done <- c.record() }()
	return c, nil
}

// Stop ends the recording and returns the number of frames. Every frame that the
// device carried before is in the file; where the kernel lost one, that is an
// error.
func (c *Capture) Stop() (frames int, err error) {
	if err := c.socket.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return 0, err
	}
	err = <-c.done
	return c.frames, errors.Join(err, c.lost(), c.socket.Close(), c.out.Close())
}

// record copies frames until the read deadline has passed and none is left.
func (c *Capture) record() error {
	buffered := bufio.NewWriterSize(c.out, 1<<20)
	w, err := NewPcapWriter(buffered)
	if err != nil {
		return err
	}
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	frame := make([]byte, snapLen)
	// next takes one frame, or says that there is none at the moment.
	next := func(fd uintptr) (found bool, err error) {
		n, from, err := unix.Recvfrom(int(fd), frame, unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN): // down is no end: it may come up again
			return true, nil
		case err != nil:
			return false, err
		}
		if on, ok := from.(*unix.SockaddrLinklayer); ok && on.Hatype == unix.ARPHRD_LOOPBACK && on.Pkttype == unix.PACKET_OUTGOING {
			return true, nil // a loopback device shows every frame twice
		}
		c.frames++
		return true, w.Write(time.Now(), frame[:min(n, len(frame))])
	}
	for {
		var taken error
		ended := raw.Read(func(fd uintptr) bool {
			found, err := next(fd)
			taken = err
			return found || err != nil
		})
		if taken != nil {
			return taken
		}
		if errors.Is(ended, os.ErrDeadlineExceeded) {
			break
		}
		if ended != nil {
			return ended
		}
	}
	var rest error
	err = raw.Control(func(fd uintptr) {
		for found := true; found && rest == nil; {
			found, rest = next(fd)
		}
	})
	return errors.Join(err, rest, buffered.Flush())
}

// lost is an error where the kernel dropped frames for want of room.
func (c *Capture) lost() error {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	var stats *unix.TpacketStats
	var failed error
	err = raw.Control(func(fd uintptr) {
		stats, failed = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if stats.Drops > 0 {
		return fmt.Errorf("capture lost %d of %d frames", stats.Drops, stats.Packets)
	}
	return nil
}

// packetSocket opens a socket that sees all frames of a device of the thread's
// network namespace.
func packetSocket(device string) (*os.File, error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	// Protocol 0 hears nothing, so that no frame of another device comes before bind.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		// Without the right to exceed the limit, the limit; losses are detected anyway.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
	}
	const all = unix.ETH_P_ALL<<8&0xFF00 | unix.ETH_P_ALL>>8 // network order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}); err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "packet:"+device), nil
}

// Here runs a function where the caller is.
func Here(f func() error) error { return f() }

// InNamespaceOf returns a runner of functions in the network namespace of a
// process.
func InNamespaceOf(pid int) func(func() error) error {
	return func(f func() error) error {
		failed := make(chan error, 1)
		go func() {
			// Never unlocked: the thread that changed its namespace ends with the goroutine.
			runtime.LockOSThread()
			failed <- inNamespace(fmt.Sprintf("/proc/%d/ns/net", pid), f)
		}()
		return <-failed
	}
}

func inNamespace(path string, f func() error) error {
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return os.NewSyscallError("setns", err)
	}
	return f()
}
