package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// An InUseError says that an own address and port belong to another socket. Two
// stacks cannot share one address: each would get a part of what is meant for the
// other (RB-9). It wraps EADDRINUSE.
type InUseError struct {
	Network string // "udp" or "tcp"
	Addr    netip.AddrPort
	Holder  string // who has it, "vsomeipd (pid 812)"; empty where that cannot be seen
	All     bool   // the holder has the port on all addresses of the host
	Err     error
}

// Error implements error. It tells what to do.
func (e *InUseError) Error() string {
	by := e.Holder
	if by == "" {
		by = "another socket of this host, a second SOME/IP stack such as vsomeip"
	}
	advice := "give this stack an address of its own (a second address of the interface will do) or another port"
	if e.All {
		by += ", on all addresses"
		advice = "choose another port; service discovery can share it with another address (UDPConfig.Shared)"
	}
	return fmt.Sprintf("endpoint: %s %v is in use by %s: stop it, or %s", e.Network, e.Addr, by, advice)
}

// Unwrap returns the error of the system.
func (e *InUseError) Unwrap() error { return e.Err }

// A NoAddressError says that this host does not have an own address, or does not
// have it yet: wait for it with [Links.Wait] and try again. It wraps
// EADDRNOTAVAIL.
type NoAddressError struct {
	Addr netip.Addr
	Err  error
}

// Error implements error.
func (e *NoAddressError) Error() string {
	return fmt.Sprintf("endpoint: no interface has address %v", e.Addr)
}

// Unwrap returns the error of the system.
func (e *NoAddressError) Unwrap() error { return e.Err }

// A HandshakeError says that what protects a connection or a datagram socket could not
// come to terms with a peer: neither side has sent or received a message then.
type HandshakeError struct {
	Peer netip.AddrPort
	Err  error // what the layer said: whose certificate it does not trust, say
}

// Error implements error.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("endpoint: handshake with %v: %v", e.Peer, e.Err)
}

// Unwrap returns Err.
func (e *HandshakeError) Unwrap() error { return e.Err }

// bindError says what an error of binding a local address means.
func bindError(network string, local netip.AddrPort, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*InUseError)):
		return err
	case isInUse(err):
		by, all := holder(network, local)
		return &InUseError{Network: network, Addr: local, Holder: by, All: all, Err: err}
	case errors.Is(err, syscall.EADDRNOTAVAIL) && !isSyscall(err, "connect", syscall.EADDRNOTAVAIL):
		return &NoAddressError{Addr: local.Addr(), Err: err}
	default:
		return fmt.Errorf("endpoint: %w", err)
	}
}

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// network4or6 is the network of package net for an address: "udp4", "tcp6".
func network4or6(network string, a netip.Addr) string {
	if a.Is4() {
		return network + "4"
	}
	return network + "6"
}
