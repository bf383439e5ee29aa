package secure

import (
	"net"
	"net/netip"
	"time"

	"github.com/pion/logging"
	"github.com/pion/transport/v5/packetio"

	"carisma.dev/gateway/someip/endpoint"
)

// inboxSize bounds what waits for one association, in bytes.
const inboxSize = 256 << 10

// wire is the part of a UDP socket that belongs to one peer: what an association
// reads and writes.
type wire struct {
	u      *endpoint.UDP
	peer   netip.AddrPort
	remote net.Addr
	inbox  *packetio.Buffer
}

var _ net.PacketConn = (*wire)(nil)

func newWire(u *endpoint.UDP, peer netip.AddrPort) *wire {
	w := &wire{u: u, peer: peer, remote: net.UDPAddrFromAddrPort(peer), inbox: packetio.NewBuffer()}
	w.inbox.SetLimitSize(inboxSize)
	return w
}

// put queues a datagram of the peer; false says that there is no room.
func (w *wire) put(b []byte) bool {
	_, err := w.inbox.Write(b, nil)
	return err == nil
}

// ReadFrom implements [net.PacketConn].
func (w *wire) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, err := w.inbox.Read(b, nil)
	return n, w.remote, err
}

// WriteTo implements [net.PacketConn]. There is one peer.
func (w *wire) WriteTo(b []byte, _ net.Addr) (int, error) {
	if err := w.u.Send(w.peer, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements [net.PacketConn].
func (w *wire) Close() error { return w.inbox.Close() }

// LocalAddr implements [net.PacketConn].
func (w *wire) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(w.u.LocalAddr()) }

// SetDeadline implements [net.PacketConn].
func (w *wire) SetDeadline(t time.Time) error { return w.inbox.SetReadDeadline(t) }

// SetReadDeadline implements [net.PacketConn].
func (w *wire) SetReadDeadline(t time.Time) error { return w.inbox.SetReadDeadline(t) }

// SetWriteDeadline implements [net.PacketConn]. Sending a datagram does not wait
// for the peer.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// silence is a log that nobody reads: what matters is in the errors.
type silence struct{}

// NewLogger implements [logging.LoggerFactory].
func (silence) NewLogger(string) logging.LeveledLogger { return silence{} }

func (silence) Trace(string)          {}
func (silence) Tracef(string, ...any) {}
func (silence) Debug(string)          {}
func (silence) Debugf(string, ...any) {}
func (silence) Info(string)           {}
func (silence) Infof(string, ...any)  {}
func (silence) Warn(string)           {}
func (silence) Warnf(string, ...any)  {}
func (silence) Error(string)          {}
func (silence) Errorf(string, ...any) {}
