package endpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// linkSource receives news of interfaces and addresses from the kernel, by a
// netlink socket.
type linkSource struct {
	file *os.File // nonblocking, so that Close ends a Read
	buf  []byte
	lost bool // some news
}

func (s *linkSource) open() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("endpoint: links: %w", os.NewSyscallError("socket", err))
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return fmt.Errorf("endpoint: links: %w", os.NewSyscallError("bind", err))
	}
	s.file = os.NewFile(uintptr(fd), "netlink")
	s.buf = make([]byte, 64<<10)
	return nil
}

func (s *linkSource) close() error { return s.file.Close() }

// next waits for news. Where some were lost it returns all that is.
func (s *linkSource) next() ([]linkChange, error) {
	for {
		n, err := s.file.Read(s.buf)
		s.lost = s.lost || errors.Is(err, unix.ENOBUFS)
		switch {
		case errors.Is(err, os.ErrClosed):
			return nil, err
		case s.lost:
			if all, err := readLinks(); err == nil {
				s.lost = false
				return all, nil
			}
		case err != nil:
			return nil, err
		}
		if changes := parseLinks(nil, s.buf[:max(n, 0)]); len(changes) > 0 {
			return changes, nil
		}
	}
}

// dump fills a state with what is.
func (s *linkSource) dump(state *linkState) error {
	changes, err := readLinks()
	for _, c := range changes {
		state.apply(c)
	}
	return err
}

// readLinks asks for all interfaces and addresses. News that come meanwhile say
// the same again.
func readLinks() ([]linkChange, error) {
	changes := []linkChange{{kind: linkReset}}
	for _, request := range []int{unix.RTM_GETLINK, unix.RTM_GETADDR} {
		rib, err := syscall.NetlinkRIB(request, unix.AF_UNSPEC)
		if err != nil {
			return nil, fmt.Errorf("endpoint: links: %w", os.NewSyscallError("netlink", err))
		}
		changes = parseLinks(changes, rib)
	}
	return changes, nil
}

// parseLinks appends what netlink messages say about interfaces and addresses.
// Messages that are cut off or of other kinds say nothing.
func parseLinks(changes []linkChange, b []byte) []linkChange {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		kind := binary.NativeEndian.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			break
		}
		body := b[unix.NLMSG_HDRLEN:size]
		var c linkChange
		switch kind {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			c = parseLink(body, kind == unix.RTM_NEWLINK)
		case unix.RTM_NEWADDR, unix.RTM_DELADDR:
			c = parseAddress(body, kind == unix.RTM_NEWADDR)
		}
		if c.kind != linkNone {
			changes = append(changes, c)
		}
		b = b[min(align4(size), len(b)):]
	}
	return changes
}

func align4(n int) int { return (n + 3) &^ 3 }

// parseLink reads a struct ifinfomsg and its attributes.
func parseLink(b []byte, set bool) (c linkChange) {
	if len(b) < unix.SizeofIfInfomsg || b[0] == unix.AF_BRIDGE { // which speaks of ports of a bridge
		return c
	}
	c.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	if !set {
		c.kind = linkGone
		return c
	}
	const running = unix.IFF_UP | unix.IFF_RUNNING
	flags := binary.NativeEndian.Uint32(b[8:])
	c.kind = linkSet
	c.running, c.loopback = flags&running == running, flags&unix.IFF_LOOPBACK != 0
	attributes(b[unix.SizeofIfInfomsg:], func(kind uint16, value []byte) {
		if kind == unix.IFLA_IFNAME {
			c.name = unix.ByteSliceToString(value)
		}
	})
	return c
}

// parseAddress reads a struct ifaddrmsg and its attributes. An IPv6 address of
// which the host does not know yet that it is the only one cannot be bound.
func parseAddress(b []byte, set bool) (c linkChange) {
	if len(b) < unix.SizeofIfAddrmsg {
		return c
	}
	bits := int(b[1])
	flags := uint32(b[2])
	c.index = int(binary.NativeEndian.Uint32(b[4:]))
	var local, address netip.Addr
	attributes(b[unix.SizeofIfAddrmsg:], func(kind uint16, value []byte) {
		switch addr, _ := netip.AddrFromSlice(value); {
		case kind == unix.IFA_FLAGS && len(value) == 4:
			flags = binary.NativeEndian.Uint32(value)
		case kind == unix.IFA_LOCAL: // of a link between two it is the own end, the other is the peer's
			local = addr
		case kind == unix.IFA_ADDRESS:
			address = addr
		}
	})
	if !local.IsValid() {
		local = address
	}
	c.addr = netip.PrefixFrom(local, bits)
	if !c.addr.IsValid() {
		return linkChange{}
	}
	c.kind = addressGone
	if set && flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 || flags&unix.IFA_F_OPTIMISTIC != 0 && set {
		c.kind = addressSet
	}
	return c
}

// attributes calls f for each netlink attribute.
func attributes(b []byte, f func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return
		}
		f(binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofRtAttr:size])
		b = b[min(align4(size), len(b)):]
	}
}
