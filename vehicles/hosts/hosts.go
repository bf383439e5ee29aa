// Package hosts makes the simulated hosts and networks of a vehicle on one
// machine: either loopback addresses, which needs no privilege, or network
// namespaces joined by bridges and veth pairs.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"syscall"
)

// Network is one simulated network.
type Network struct {
	Name   string
	Subnet netip.Prefix
	// Multicast networks carry SOME/IP-SD: hosts route multicast to the first of
	// theirs.
	Multicast bool
}

// Spec describes one host: its address on each of its networks, by name.
type Spec struct {
	Name      string
	Addresses map[string]netip.Addr
}

// Host is one simulated host. Its methods may be called concurrently.
type Host struct {
	Name string
	work chan func()
	done chan struct{}
}

// World is a set of hosts and networks. Close it to undo everything.
type World struct {
	hosts map[string]*Host
	close []func() error
}

// Host returns a host by name, nil if there is none.
func (w *World) Host(name string) *Host { return w.hosts[name] }

// Close ends the hosts. Processes that were started on them must have ended.
func (w *World) Close() error {
	var errs []error
	for _, h := range w.hosts {
		h.stop()
	}
	for i := len(w.close) - 1; i >= 0; i-- {
		errs = append(errs, w.close[i]())
	}
	w.close = nil
	return errors.Join(errs...)
}

// Loopback makes hosts that share the machine's network. All they have of their
// own is an address of 127/8, see LoopbackAddr.
func Loopback(specs []Spec) (*World, error) {
	w := &World{hosts: map[string]*Host{}}
	for _, s := range specs {
		w.hosts[s.Name] = newHost(s.Name, nil)
	}
	return w, nil
}

// LoopbackAddr maps an address of 10/8 to the one of 127/8 that stands for it
// where hosts are loopback addresses. Others stay as they are.
func LoopbackAddr(a netip.Addr) netip.Addr {
	if !a.Is4() || a.As4()[0] != 10 {
		return a
	}
	b := a.As4()
	b[0] = 127
	return netip.AddrFrom4(b)
}

// newHost starts the thread on which everything of the host is made, after
// enter has put it where it belongs. The thread lives as long as the host: a
// process asks to be ended when the thread that started it ends.
func newHost(name string, enter func() error) *Host {
	h := &Host{Name: name, work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		runtime.LockOSThread() // not unlocked: a thread in another namespace must not be used again
		var err error
		if enter != nil {
			err = enter()
		}
		for f := range h.work {
			if err == nil {
				f()
			}
		}
	}()
	return h
}

func (h *Host) stop() {
	close(h.work)
	<-h.done
}

// Do runs f on the host's thread: sockets that f makes belong to the host. It
// returns the error of f.
func (h *Host) Do(f func() error) error {
	result := make(chan error, 1)
	h.work <- func() { result <- f() }
	return <-result
}

// Start starts a command on the host. The command ends with this process.
func (h *Host) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	if err := h.Do(cmd.Start); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	return nil
}

// Dial connects from the host.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := h.Do(func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}
