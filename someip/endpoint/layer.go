package endpoint

import (
	"context"
	"net"
	"net/netip"
)

// A StreamLayer protects TCP connections, as TLS does. Package secure has one; a
// program that needs none does not link it. Its methods are called concurrently.
type StreamLayer interface {
	// Client and Server do the handshake on a connection, which is the layer's
	// from then on, and return what carries the messages. The context bounds the
	// handshake. After an error the caller closes c. What they return closes c
	// with itself; its Write and Close may block, but not without end.
	Client(ctx context.Context, c net.Conn, server netip.AddrPort) (net.Conn, error)
	Server(ctx context.Context, c net.Conn) (net.Conn, error)
}

// A HandshakeHandler is told of peers whose handshake did not succeed. An
// [AcceptHandler] may be one besides.
type HandshakeHandler interface {
	// HandshakeFailed is called on a goroutine of the peer's.
	HandshakeFailed(err *HandshakeError)
}

// A PacketLayer protects UDP sockets, as DTLS does. Package secure has one.
type PacketLayer interface {
	// Client and Server return what carries datagrams over a socket, which is the
	// layer's from then on and closed with what they return. As a server it
	// answers peers that begin; as a client it begins with whom something is sent
	// to. Multicast cannot be protected.
	Client(u *UDP) (PacketSocket, error)
	Server(u *UDP) (PacketSocket, error)
}

// A HandshakeSocket is a [PacketSocket] that tells of its handshakes. That of a
// PacketLayer may be one.
type HandshakeSocket interface {
	PacketSocket
	// OnHandshakeFailure has h told of what fails from then on. It comes before Serve
	// and Send.
	OnHandshakeFailure(h HandshakeHandler)
}
