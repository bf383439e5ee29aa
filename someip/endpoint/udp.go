package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// MaxDatagram is the most that one UDP datagram carries.
const MaxDatagram = 65507

// DefaultReceiveBuffer is what is asked of the kernel for the receive queue of
// a UDP socket, in bytes (UDP-8).
const DefaultReceiveBuffer = 2 << 20

// A PacketHandler gets one datagram. The bytes are valid until it returns.
type PacketHandler func(from netip.AddrPort, datagram []byte)

// UDPConfig describes a UDP socket.
type UDPConfig struct {
	// Local is the address and port to bind; port 0 lets the system choose.
	Local netip.AddrPort
	// Interface is the network device for multicast; empty: the one that has
	// the local address (on 127.0.0.0/8 the loopback device).
	Interface string
	// ReceiveBuffer in bytes. 0: [DefaultReceiveBuffer].
	ReceiveBuffer int
}

// UDP is a UDP socket. Its methods are safe for concurrent use.
type UDP struct {
	conn  *net.UDPConn
	local netip.AddrPort
	serve sync.WaitGroup

	dev   device // of a multicast socket, with the following
	own   netip.Addr
	group netip.Addr
}

// ListenUDP opens a unicast socket, which also sends to multicast groups:
// through the interface of its local address, with a TTL of 1, heard by other
// sockets of the same host. The port is not shared, so that a second stack on
// one address is noticed.
func ListenUDP(cfg UDPConfig) (*UDP, error) {
	dev, err := findDevice(cfg.Interface, cfg.Local.Addr())
	if err != nil {
		return nil, err
	}
	return listen(cfg.Local, cfg.ReceiveBuffer, func(fd int) error {
		return setMulticastOut(fd, dev, cfg.Local.Addr())
	})
}

// ListenMulticast opens a socket that receives what is sent to a multicast
// group, and nothing else, on the interface of an own address. Several sockets
// of a host may listen to the same group and port.
func ListenMulticast(group netip.AddrPort, cfg UDPConfig) (*UDP, error) {
	if !group.Addr().IsMulticast() {
		return nil, fmt.Errorf("endpoint: %v is not a multicast group", group)
	}
	own := cfg.Local.Addr()
	dev, err := findDevice(cfg.Interface, own)
	if err != nil {
		return nil, err
	}
	// Package net binds the wildcard address for a group, which would take the
	// port from unicast sockets and hear other groups: so the socket is made here.
	conn, err := bindGroup(group, dev, orDefault(cfg.ReceiveBuffer))
	if err != nil {
		return nil, fmt.Errorf("endpoint: listen to %v: %w", group, err)
	}
	u := &UDP{conn: conn, local: group, dev: dev, own: own, group: group.Addr()}
	if err := u.join(); err != nil {
		u.conn.Close()
		return nil, err
	}
	return u, nil
}

func (u *UDP) join() error {
	err := u.control(func(fd int) error { return membership(fd, u.dev, u.own, u.group, true) })
	if err != nil {
		return fmt.Errorf("endpoint: join %v on %v: %w", u.group, u.own, err)
	}
	return nil
}

// Rejoin leaves the group of a multicast socket and joins it again, which makes
// switches learn of the membership anew (9.6, case 70).
func (u *UDP) Rejoin() error {
	// Where the interface was away the membership is gone already.
	_ = u.control(func(fd int) error { return membership(fd, u.dev, u.own, u.group, false) })
	return u.join()
}

func listen(local netip.AddrPort, buffer int, set func(fd int) error) (*UDP, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return rawControl(raw, func(fd int) error {
			setReceiveBuffer(fd, orDefault(buffer))
			return set(fd)
		})
	}}
	network := "udp4"
	if local.Addr().Is6() {
		network = "udp6"
	}
	pc, err := lc.ListenPacket(context.Background(), network, local.String())
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	conn := pc.(*net.UDPConn)
	return &UDP{conn: conn, local: canonical(conn.LocalAddr().(*net.UDPAddr).AddrPort())}, nil
}

func orDefault(buffer int) int {
	if buffer == 0 {
		return DefaultReceiveBuffer
	}
	return buffer
}

// canonical makes addresses comparable: IPv4 is never written as IPv6.
func canonical(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// LocalAddr is the address the socket is bound to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Send sends one datagram. It does not keep b.
func (u *UDP) Send(to netip.AddrPort, b []byte) error {
	_, err := u.conn.WriteToUDPAddrPort(b, to)
	return err
}

// Serve starts to receive: h is called for each datagram, on one goroutine,
// until Close. Call it once.
func (u *UDP) Serve(h PacketHandler) {
	u.serve.Go(func() { u.receive(h) })
}

// Close closes the socket and waits until the handler has returned.
func (u *UDP) Close() error {
	err := u.conn.Close()
	u.serve.Wait()
	return err
}

func (u *UDP) control(f func(fd int) error) error {
	raw, err := u.conn.SyscallConn()
	if err != nil {
		return err
	}
	return rawControl(raw, f)
}

// rawControl runs f on the descriptor and returns its error.
func rawControl(raw syscall.RawConn, f func(fd int) error) error {
	var ferr error
	if err := raw.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return ferr
}
