// Package endpoint has the sockets of a SOME/IP stack: UDP unicast and multicast
// with batches both ways, and TCP with framing by the Length field.
//
// A handler gets whole datagrams or whole messages, on the goroutine that
// received them, as views of a buffer that is reused when it returns. In steady
// state nothing is allocated for a datagram. Every Close waits until the
// goroutines of the socket have ended, and so must not be called from its
// handler.
//
// [ListenUDP] and [ListenMulticast] open UDP sockets, [Groups] keeps those of any
// number of groups; [DialTCP], [Redial] and [ListenTCP] are for TCP. [Links] tells
// when an own address or its interface goes and comes. An address that another stack
// has is an [InUseError], one that the host does not have (yet) a [NoAddressError].
// Package secure protects what goes over these sockets, by [StreamLayer] and
// [PacketLayer].
//
// It is for Linux.
package endpoint
