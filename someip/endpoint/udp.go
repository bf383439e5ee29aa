package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
)

// MaxDatagram is the most that one UDP datagram carries.
const MaxDatagram = 65507

// Defaults of the buffers that are asked of the kernel for a UDP socket, in bytes
// (UDP-8).
const (
	DefaultReceiveBuffer = 2 << 20
	DefaultSendBuffer    = 1 << 20
)

// A PacketHandler gets one datagram. The bytes are valid until it returns; who keeps
// them longer reads other datagrams, or, once the socket is closed, crashes.
type PacketHandler func(from netip.AddrPort, datagram []byte)

// A PacketSocket carries datagrams: a [UDP] socket, or something that protects
// one, such as DTLS. Its methods are safe for concurrent use.
type PacketSocket interface {
	// LocalAddr is the address the socket is bound to.
	LocalAddr() netip.AddrPort
	// Send sends one datagram. It does not keep b.
	Send(to netip.AddrPort, b []byte) error
	// SendBatch sends several datagrams, each whatever becomes of the others,
	// and returns how many were handed over and the first error. It keeps neither
	// the batch nor its bytes.
	SendBatch(batch []Datagram) (sent int, err error)
	// Serve starts to receive until Close. Datagrams of one peer come in order, on
	// one goroutine; those of several peers may come on several. Call it once.
	Serve(h PacketHandler)
	// Close closes the socket and waits until the handler has returned.
	Close() error
}

var _ PacketSocket = (*UDP)(nil)

// UDPConfig describes a UDP socket. Zero values stand for the defaults.
type UDPConfig struct {
	// Local is the address and port to bind; port 0 takes one of Ports, or lets
	// the system choose.
	Local netip.AddrPort
	// Ports are what is chosen from, in turn, if Local has no port (UDP-6).
	Ports PortRange
	// Interface is the network device for multicast; empty: the one that has
	// the local address (on 127.0.0.0/8 the loopback device).
	Interface string
	// ReceiveBuffer and SendBuffer are asked of the kernel, in bytes; what it
	// grants is shown by [UDP.Buffers]. 0: [DefaultReceiveBuffer],
	// [DefaultSendBuffer].
	ReceiveBuffer, SendBuffer int
	// Accept are the subnets whose datagrams are received; those of others are
	// dropped and counted. Empty: all.
	Accept []netip.Prefix
	// Marking is that of all that is sent.
	Marking Marking
	// Shared binds beside sockets that have the port on all addresses of the
	// host, as vsomeip has the SD port. Of a socket at exactly this address it
	// tells all the same, by an [InUseError]; one that comes later is not kept
	// away: see [UDP.Alone] and [Echoes].
	Shared bool
}

func (c UDPConfig) withDefaults() UDPConfig {
	if c.ReceiveBuffer == 0 {
		c.ReceiveBuffer = DefaultReceiveBuffer
	}
	if c.SendBuffer == 0 {
		c.SendBuffer = DefaultSendBuffer
	}
	c.Local = Canonical(c.Local, "")
	return c
}

// UDP is a UDP socket. Its methods are safe for concurrent use.
type UDP struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	local   netip.AddrPort
	iface   string // as configured
	own     netip.Addr
	accept  filter
	serve   sync.WaitGroup
	sending sendBatch

	received, filtered atomic.Uint64
	dropped            atomic.Uint32 // the kernel's counter wraps too
	blind              bool          // it does not tell

	group netip.Addr // of a multicast socket
	mu    sync.Mutex
	dev   device // the device used for multicast; guarded by mu
}

// UDPStats counts what came to a socket since it was opened, in datagrams.
type UDPStats struct {
	Received uint64 // given to the handler
	Filtered uint64 // of senders outside of [UDPConfig.Accept]
	// Dropped counts what the kernel dropped because the receive buffer was full.
	// It tells with the next datagram that it does receive (SO_RXQ_OVFL).
	Dropped uint64
	// DropsUnknown says that the system does not tell: Dropped stays 0.
	DropsUnknown bool
}

// ListenUDP opens a unicast socket, which also sends to multicast groups:
// through the interface of its local address, with a TTL of 1, heard by other
// sockets of the same host. The port is not shared, so that a second stack on
// one address is noticed: an [InUseError] says so. A [NoAddressError] says that the
// host does not have the address (yet).
func ListenUDP(cfg UDPConfig) (*UDP, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Marking.validate(); err != nil {
		return nil, err
	}
	dev, err := findDevice(cfg.Interface, cfg.Local.Addr())
	if err != nil {
		return nil, err
	}
	var u *UDP
	err = cfg.Ports.bind("udp", cfg.Local, func(local netip.AddrPort) error {
		u, err = listen(local, cfg, dev)
		return err
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

func listen(local netip.AddrPort, cfg UDPConfig, dev device) (*UDP, error) {
	if cfg.Shared {
		if err := alone(local, ""); err != nil {
			return nil, err
		}
	}
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return rawControl(raw, func(fd int) error {
			if err := setPacketOptions(fd, local.Addr(), cfg); err != nil {
				return err
			}
			return setMulticastOut(fd, dev, local.Addr())
		})
	}}
	pc, err := lc.ListenPacket(context.Background(), network4or6("udp", local.Addr()), numbered(local).String())
	if err != nil {
		return nil, err
	}
	u, err := newUDP(pc.(*net.UDPConn), cfg, dev)
	if err != nil {
		return nil, err
	}
	u.local = Canonical(u.conn.LocalAddr().(*net.UDPAddr).AddrPort(), "")
	if cfg.Shared { // somebody may have come between the look and the bind
		if err := u.Alone(); err != nil {
			u.conn.Close()
			return nil, err
		}
	}
	return u, nil
}

func newUDP(conn *net.UDPConn, cfg UDPConfig, dev device) (*UDP, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	u := &UDP{conn: conn, raw: raw, iface: cfg.Interface, own: cfg.Local.Addr(), accept: cfg.Accept, dev: dev}
	u.sending.init()
	_ = u.control(func(fd int) error { u.blind = !countsDrops(fd); return nil }) // a closed socket drops nothing
	return u, nil
}

// Alone returns an [InUseError] if another socket of this host is bound to exactly
// the same address. It looks at all sockets of the host, which takes about a
// millisecond.
func (u *UDP) Alone() error { return alone(u.local, u.inode()) }

func alone(local netip.AddrPort, own string) error {
	other := otherSocket(local, own)
	if other == "" {
		return nil
	}
	return &InUseError{Network: "udp", Addr: local, Holder: process(other), Err: syscall.EADDRINUSE}
}

// LocalAddr is the address the socket is bound to.
func (u *UDP) LocalAddr() netip.AddrPort { return u.local }

// Send sends one datagram. It does not keep b.
func (u *UDP) Send(to netip.AddrPort, b []byte) error {
	if to.Addr().Zone() != "" { // see numbered
		one := [...]Datagram{{to, b}}
		_, err := u.SendBatch(one[:])
		return err
	}
	_, err := u.conn.WriteToUDPAddrPort(b, to)
	return err
}

// Serve starts to receive: h is called for each datagram, on one goroutine,
// until Close. Call it once.
func (u *UDP) Serve(h PacketHandler) {
	u.ServeBatches(h, nil)
}

// ServeBatches is Serve that tells where what came together ends: end, if not nil, is
// called on the goroutine of the handler after it had some datagrams, before
// the socket is asked again.
func (u *UDP) ServeBatches(h PacketHandler, end func()) {
	u.serve.Go(func() { u.receive(h, end) })
}

// Stats returns a snapshot of the counters.
func (u *UDP) Stats() UDPStats {
	return UDPStats{Received: u.received.Load(), Filtered: u.filtered.Load(), Dropped: uint64(u.dropped.Load()), DropsUnknown: u.blind}
}

// Buffers returns the sizes of the receive and send buffer that the kernel has
// granted, in bytes.
func (u *UDP) Buffers() (receive, send int) {
	_ = u.control(func(fd int) error { receive, send = bufferSizes(fd); return nil })
	return receive, send
}

// Close closes the socket and waits until the handler has returned.
func (u *UDP) Close() error {
	err := u.conn.Close()
	u.serve.Wait()
	return err
}

func (u *UDP) control(f func(fd int) error) error { return rawControl(u.raw, f) }

// rawControl runs f on the descriptor and returns its error.
func rawControl(raw syscall.RawConn, f func(fd int) error) error {
	var ferr error
	if err := raw.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return ferr
}
