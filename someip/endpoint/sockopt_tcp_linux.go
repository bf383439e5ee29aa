package endpoint

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// userTimeout bounds how long sent data stays unacknowledged, in milliseconds (TCP-7).
const userTimeout = 3000

// controlTCP prepares a socket that is not bound yet.
func controlTCP(own netip.Addr, cfg TCPConfig, reuse bool) func(_, _ string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		return rawControl(raw, func(fd int) error {
			if reuse { // a client port that was closed lately may be bound again
				if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
					return err
				}
			}
			if err := setInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, userTimeout); err != nil {
				return err
			}
			return setMarking(fd, own, cfg.Marking)
		})
	}
}

// markAccepted marks a connection that a listener gave: it has the DSCP of the
// listener but not its priority.
func markAccepted(c syscall.Conn, own netip.Addr, m Marking) error {
	if m == (Marking{}) {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return rawControl(raw, func(fd int) error { return setMarking(fd, own, m) })
}
