package endpoint

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const multicastTTL = 1

// setPacketOptions sets what unicast and multicast sockets have in common.
func setPacketOptions(fd int, own netip.Addr, cfg UDPConfig) error {
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.ReceiveBuffer)
	setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	if cfg.Shared {
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
	}
	if err := setInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return err // a system without it, as qemu-user is, counts no drops: see countsDrops
	}
	return setMarking(fd, own, cfg.Marking)
}

// countsDrops reports whether the system tells what it drops.
func countsDrops(fd int) bool {
	on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL)
	return err == nil && on != 0
}

// setBuffer asks for more than the system's limit where it may; what is granted
// is enough to work with, so a refusal is no error.
func setBuffer(fd, force, plain, bytes int) {
	if setInt(fd, unix.SOL_SOCKET, force, bytes) != nil {
		_ = setInt(fd, unix.SOL_SOCKET, plain, bytes)
	}
}

// bufferSizes returns what was granted: half of what the kernel shows, which
// counts its own bookkeeping.
func bufferSizes(fd int) (receive, send int) {
	receive, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	send, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	return receive / 2, send / 2
}

// setMarking sets the DSCP before the priority, which the kernel derives from it.
func setMarking(fd int, own netip.Addr, m Marking) error {
	if m.DSCP != 0 {
		level, opt := unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		if own.Is4() {
			level, opt = unix.IPPROTO_IP, unix.IP_TOS
		}
		if err := setInt(fd, level, opt, int(m.DSCP)<<2); err != nil {
			return err
		}
	}
	if m.Priority == 0 {
		return nil
	}
	return setInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, m.Priority)
}

func setInt(fd, level, opt, value int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, level, opt, value))
}

// inode identifies the socket in /proc/net.
func (u *UDP) inode() string {
	var st unix.Stat_t
	_ = u.control(func(fd int) error { return unix.Fstat(fd, &st) })
	return strconv.FormatUint(st.Ino, 10)
}

// bindToDevice ties a socket to an interface.
func bindToDevice(fd int, dev device) error {
	return setInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, dev.index)
}

// setMulticastOut chooses the interface, hop limit and loop for multicast sent. Where
// the system has no such options, as qemu-user has not, its routes choose.
func setMulticastOut(fd int, dev device, own netip.Addr) error {
	err := chooseMulticastOut(fd, dev, own)
	if errors.Is(err, unix.ENOPROTOOPT) {
		return nil
	}
	return os.NewSyscallError("setsockopt", err)
}

func chooseMulticastOut(fd int, dev device, own netip.Addr) error {
	if own.Is6() {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, dev.index); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, multicastTTL); err != nil {
			return err
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_LOOP, 1)
	}
	mreq := unix.IPMreqn{Address: own.As4(), Ifindex: int32(dev.index)}
	if err := unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &mreq); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, multicastTTL); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1)
}

// bindGroup opens a socket that is bound to a multicast group.
func bindGroup(group netip.AddrPort, dev device, cfg UDPConfig) (*net.UDPConn, error) {
	family := unix.AF_INET
	var sa unix.Sockaddr
	if group.Addr().Is4() {
		sa = &unix.SockaddrInet4{Port: int(group.Port()), Addr: group.Addr().As4()}
	} else {
		family = unix.AF_INET6
		sa = &unix.SockaddrInet6{Port: int(group.Port()), Addr: group.Addr().As16(), ZoneId: uint32(dev.index)}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "multicast") // closes fd below; net keeps a copy
	defer file.Close()
	if err := setPacketOptions(fd, group.Addr(), cfg); err != nil {
		return nil, err
	}
	if err := shareMulticast(fd); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return nil, os.NewSyscallError("bind", err)
	}
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// shareMulticast lets several sockets bind one group, and restricts each to
// the interfaces that it joined itself. SO_REUSEPORT is not set: with it, of two
// sockets of one group on two interfaces one may hear nothing.
func shareMulticast(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	if domain == unix.AF_INET6 {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
}

// membership joins or leaves a group on the interface.
func membership(fd int, dev device, own, group netip.Addr, join bool) error {
	if group.Is6() {
		mreq := unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(dev.index)}
		opt := unix.IPV6_JOIN_GROUP
		if !join {
			opt = unix.IPV6_LEAVE_GROUP
		}
		return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, opt, &mreq)
	}
	mreq := unix.IPMreqn{Multiaddr: group.As4(), Address: own.As4(), Ifindex: int32(dev.index)}
	opt := unix.IP_ADD_MEMBERSHIP
	if !join {
		opt = unix.IP_DROP_MEMBERSHIP
	}
	return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, opt, &mreq)
}
