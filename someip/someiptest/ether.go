package someiptest

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/runtime"
)

// Ether is a SOME/IP network in memory, for tests with a fake clock: in a bubble of
// testing/synctest seconds of offers, lifetimes and time-outs pass at once, and the
// same way each time. It carries UDP, by unicast and multicast, and TCP, without delay.
//
//	synctest.Test(t, func(t *testing.T) {
//		ether := someiptest.NewEther(t)
//		server, client := ether.Start(1), ether.Start(2)
//		…
//		time.Sleep(3 * time.Second) // of the fake clock
//	})
//
// The stacks end with the test, in a bubble that is when its function returns:
// nothing there may wait for them afterwards.
type Ether struct {
	tb testing.TB

	mu      sync.Mutex
	sockets map[netip.AddrPort][]*etherSocket // several at a multicast group
	servers map[netip.AddrPort]*etherListener // of TCP
	drop    func(from, to netip.AddrPort, datagram []byte) bool
	port    uint16 // the last one chosen
}

// NewEther returns a network without hosts.
func NewEther(tb testing.TB) *Ether {
	tb.Helper()
	return &Ether{tb: tb, sockets: make(map[netip.AddrPort][]*etherSocket), servers: make(map[netip.AddrPort]*etherListener), port: 49151}
}

// Addr returns the address of a host, 1 to 254.
func (e *Ether) Addr(host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, host}) }

// Config returns the configuration of a host: the network is named "lan", and all
// that can be left out has its default.
func (e *Ether) Config(host byte) runtime.NetworkConfig {
	return runtime.NetworkConfig{
		Name: "lan", Address: netip.PrefixFrom(e.Addr(host), 24), Sockets: e,
		ClientIDs: runtime.Range{First: 0x0100 + uint16(host)<<4, Last: 0x010F + uint16(host)<<4},
		Ports:     runtime.Range{First: 31000, Last: 31063},
	}
}

// Start starts a host, with its configuration changed by alter, until the test ends.
func (e *Ether) Start(host byte, alter ...func(*runtime.NetworkConfig)) *runtime.Network {
	e.tb.Helper()
	return e.StartStack(host, alter...).Network("lan")
}

// StartStack is Start for tests that close the stack themselves.
func (e *Ether) StartStack(host byte, alter ...func(*runtime.NetworkConfig)) *runtime.Stack {
	e.tb.Helper()
	return start(e.tb, e.Config(host), alter)
}

// Drop lets datagrams be lost of which f says so; nil: none. f must not call the
// Ether. TCP loses nothing.
func (e *Ether) Drop(f func(from, to netip.AddrPort, datagram []byte) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop = f
}

// ListenUDP implements [runtime.Sockets].
func (e *Ether) ListenUDP(cfg endpoint.UDPConfig) (endpoint.PacketSocket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := cfg.Local
	for at.Port() == 0 {
		if next := netip.AddrPortFrom(at.Addr(), e.nextPort()); e.sockets[next] == nil {
			at = next
		}
	}
	if e.sockets[at] != nil {
		return nil, &endpoint.InUseError{Network: "udp", Addr: at, Err: syscall.EADDRINUSE}
	}
	return e.open(at), nil
}

// ListenMulticast implements [runtime.Sockets].
func (e *Ether) ListenMulticast(group netip.AddrPort, _ endpoint.UDPConfig) (endpoint.PacketSocket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open(group), nil
}

// nextPort chooses a port. e.mu is held.
func (e *Ether) nextPort() uint16 {
	e.port = max(e.port+1, 49152)
	return e.port
}

func (e *Ether) open(at netip.AddrPort) *etherSocket {
	s := &etherSocket{e: e, at: at, inbox: make(chan packet, inboxSize), closed: make(chan struct{})}
	e.sockets[at] = append(e.sockets[at], s)
	return s
}

// send delivers a datagram to whoever is there, as UDP does.
func (e *Ether) send(from, to netip.AddrPort, b []byte) error {
	if len(b) > endpoint.MaxDatagram {
		return fmt.Errorf("someiptest: %w", syscall.EMSGSIZE)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.drop != nil && e.drop(from, to, b) {
		return nil
	}
	for _, s := range e.sockets[to] {
		select {
		case s.inbox <- packet{from, bytes.Clone(b)}:
		default: // as a receive buffer that is full
		}
	}
	return nil
}

// inboxSize is the receive buffer of a socket, in datagrams.
const inboxSize = 4096

type packet struct {
	from netip.AddrPort
	b    []byte
}

// etherSocket implements [endpoint.PacketSocket].
type etherSocket struct {
	e      *Ether
	at     netip.AddrPort
	inbox  chan packet
	serve  sync.WaitGroup
	once   sync.Once
	closed chan struct{}
}

func (s *etherSocket) LocalAddr() netip.AddrPort { return s.at }

func (s *etherSocket) Send(to netip.AddrPort, b []byte) error {
	select {
	case <-s.closed:
		return net.ErrClosed
	default:
		return s.e.send(s.at, to, b)
	}
}

func (s *etherSocket) SendBatch(batch []endpoint.Datagram) (sent int, err error) {
	for _, d := range batch {
		if e := s.Send(d.To, d.Data); e == nil {
			sent++
		} else if err == nil {
			err = e
		}
	}
	return sent, err
}

func (s *etherSocket) Serve(h endpoint.PacketHandler) {
	s.serve.Go(func() {
		for {
			select {
			case p := <-s.inbox:
				h(p.from, p.b)
			case <-s.closed:
				return
			}
		}
	})
}

func (s *etherSocket) Close() error {
	s.once.Do(func() {
		s.e.mu.Lock()
		s.e.sockets[s.at] = slices.DeleteFunc(s.e.sockets[s.at], func(o *etherSocket) bool { return o == s })
		if len(s.e.sockets[s.at]) == 0 {
			delete(s.e.sockets, s.at)
		}
		s.e.mu.Unlock()
		close(s.closed)
	})
	s.serve.Wait()
	return nil
}
