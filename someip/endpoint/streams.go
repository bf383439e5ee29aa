package endpoint

import (
	"context"
	"net"
	"net/netip"
)

// Streams opens the connections of TCP in place of the system, as networks in memory
// for tests do. Addresses of what it returns are *net.TCPAddr.
type Streams interface {
	// Dial connects to a server. Port 0 of local stands for any.
	Dial(ctx context.Context, local, remote netip.AddrPort) (net.Conn, error)
	// Listen opens a server socket.
	Listen(local netip.AddrPort) (net.Listener, error)
}
