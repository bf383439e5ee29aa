// Package endpoint has the sockets of a SOME/IP stack: UDP unicast and
// multicast with batched receive, and TCP with framing by the Length field.
//
// A handler gets whole datagrams or whole messages, on the goroutine that
// received them, as views of a buffer that is reused when it returns. In steady
// state nothing is allocated for a datagram. Every Close waits until the
// goroutines of the socket have ended, and so must not be called from its
// handler.
package endpoint
