package endpoint

import (
	"errors"
	"os"
	"time"
)

// Defaults of a [TCPConfig].
const (
	DefaultWriteTimeout   = 3 * time.Second
	DefaultConnectTimeout = 5 * time.Second
	DefaultSendQueue      = 1 << 20
	DefaultMaxConns       = 256
	DefaultMaxConnsOfHost = 64
)

// TCPConfig describes TCP connections. Zero values stand for the defaults.
type TCPConfig struct {
	MaxMessage     int           // longest message accepted, in bytes
	WriteTimeout   time.Duration // how long a peer may leave the send queue standing (case 19)
	ConnectTimeout time.Duration // bound of DialTCP (TCP-7), and of a handshake
	SendQueue      int           // bytes that wait for a slow peer; one message may exceed it alone
	Cookies        bool          // send magic cookies
	MaxConns       int           // connections of a listener at one time
	MaxConnsOfHost int           // and those of one peer address among them
	Ports          PortRange     // of the own end, if no port is given (UDP-6)
	Marking        Marking       // of what is sent
	Layer          StreamLayer   // protects the connections; nil: nothing does
	Streams        Streams       // opens them; nil: the system. It knows no Marking
}

func (c TCPConfig) withDefaults() TCPConfig {
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.SendQueue == 0 {
		c.SendQueue = DefaultSendQueue
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.MaxConnsOfHost == 0 {
		c.MaxConnsOfHost = DefaultMaxConnsOfHost
	}
	return c
}

// isSyscall reports whether err is that of a system call.
func isSyscall(err error, call string, errno error) bool {
	var s *os.SyscallError
	return errors.As(err, &s) && s.Syscall == call && errors.Is(s.Err, errno)
}
