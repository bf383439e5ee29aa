package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ListenMulticast opens a socket that receives what is sent to a multicast
// group, and nothing else, on the interface of an own address. Several sockets
// of a host may listen to the same group and port, and the same group on another
// network is another socket.
//
// There is a socket for each group, bound to its address: so the kernel tells the
// groups apart, and its limit of 20 memberships a socket is never reached.
func ListenMulticast(group netip.AddrPort, cfg UDPConfig) (*UDP, error) {
	if !group.Addr().IsMulticast() { // 224.0.0.0/4 and ff00::/8: case 80
		return nil, fmt.Errorf("endpoint: %v is not a multicast group", group)
	}
	cfg = cfg.withDefaults()
	dev, err := findDevice(cfg.Interface, cfg.Local.Addr())
	if err != nil {
		return nil, err
	}
	// Package net binds the wildcard address for a group, which would take the
	// port from unicast sockets and hear other groups: so the socket is made here.
	conn, err := bindGroup(group, dev, cfg)
	if err != nil {
		return nil, fmt.Errorf("endpoint: listen to %v: %w", group, err)
	}
	u, err := newUDP(conn, cfg, dev)
	if err != nil {
		return nil, err
	}
	u.local, u.group = group, group.Addr()
	if err := u.join(); err != nil {
		u.conn.Close()
		return nil, err
	}
	return u, nil
}

// join is called with u.mu held, or before others know u.
func (u *UDP) join() error {
	err := u.control(func(fd int) error { return membership(fd, u.dev, u.own, u.group, true) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOBUFS):
		return fmt.Errorf("endpoint: join %v on %v: the kernel allows no more memberships "+
			"(net.ipv4.igmp_max_memberships, net.core.optmem_max): %w", u.group, u.own, err)
	case errors.Is(err, syscall.ENODEV): // IPv4 says so where no interface has the own address
		return &NoAddressError{Addr: u.own, Err: err}
	default:
		return fmt.Errorf("endpoint: join %v on %v: %w", u.group, u.own, err)
	}
}

// Rejoin takes up multicast anew after the interface was away, was replaced by
// another of its name, or when switches may have forgotten the membership (9.6,
// case 70). A multicast socket leaves its group and joins it again; any other
// chooses the interface for what it sends to groups.
func (u *UDP) Rejoin() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	dev, err := findDevice(u.iface, u.own)
	if err != nil {
		return err
	}
	u.sending.forget()
	old := u.dev
	u.dev = dev
	err = u.control(func(fd int) error {
		if u.group.IsValid() { // where the interface was away the membership is gone already
			_ = membership(fd, old, u.own, u.group, false)
		}
		if old.index != dev.index && needsScope(u.local.Addr()) { // it is bound to the old one
			if err := bindToDevice(fd, dev); err != nil {
				return err
			}
		}
		if u.group.IsValid() {
			return nil
		}
		return setMulticastOut(fd, dev, u.own)
	})
	switch {
	case err != nil:
		return fmt.Errorf("endpoint: multicast of %v: %w", u.local, err)
	case u.group.IsValid():
		return u.join()
	}
	return nil
}
