package runtime

import (
	"sync/atomic"

	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// Stats counts, since a network was opened, its messages but those of service
// discovery, what it received and could not use, and what it could not send.
type Stats struct {
	Sent, Received    uint64 // messages handed to the network, and messages parsed
	Malformed         uint64 // datagrams with bytes that are no message, and broken streams
	WrongProtocol     uint64 // messages of another protocol version (HDR-3)
	Segments          uint64 // TP segments where none is expected (TP-10)
	UnknownService    uint64 // requests for what is not offered at that endpoint
	WrongInterface    uint64 // requests for another major version
	UnknownMethod     uint64 // requests for a method that does not exist
	WrongType         uint64 // messages whose type does not fit, or has no meaning
	WrongReturnCode   uint64 // messages with a return code that they may not have
	UnmatchedReplies  uint64 // late, doubled or foreign answers (SES-3)
	UnexpectedEvents  uint64 // notifications without subscription or from elsewhere
	Timeouts          uint64 // calls given up by their caller
	EventsDropped     uint64 // notifications that a slow TCP client made us drop
	QueueDropped      uint64 // notifications that a slow consumer made its queue drop
	EventsFiltered    uint64 // notifications that a subscription's filter left out
	SendErrors        uint64 // messages that could not be handed to the network
	ConnectionsFailed uint64 // TCP connections that could not be opened or broke
	HandshakesFailed  uint64 // TLS and DTLS: who does not trust the other, or speaks something else
	ReceiveDropped    uint64 // datagrams for which a socket had no room (UDP-8)
	Filtered          uint64 // datagrams from outside of the subnet
	E2E               E2EStats
}

// E2EStats counts the verdicts on protected messages that were received.
type E2EStats struct {
	OK, SomeLost, Repeated, WrongSequence, Error uint64
	Dropped                                      uint64 // those of them that were not delivered
}

type counters struct {
	sent, received, malformed, wrongProtocol, segments, unknownService, wrongInterface, unknownMethod,
	wrongType, wrongReturnCode, unmatched, unexpected, timeouts,
	eventsDropped, eventsFiltered, queueDropped, sendErrors, connections, handshakes, e2eDropped atomic.Uint64
	e2e [e2e.Error + 1]atomic.Uint64 // by status
}

// Stats returns a snapshot of the counters.
func (n *Network) Stats() Stats {
	c := &n.stats
	sockets := n.socketStats()
	return Stats{
		ReceiveDropped: sockets.Dropped, Filtered: sockets.Filtered,

		Sent:              c.sent.Load(),
		Received:          c.received.Load(),
		Malformed:         c.malformed.Load(),
		WrongProtocol:     c.wrongProtocol.Load(),
		Segments:          c.segments.Load(),
		UnknownService:    c.unknownService.Load(),
		WrongInterface:    c.wrongInterface.Load(),
		UnknownMethod:     c.unknownMethod.Load(),
		WrongType:         c.wrongType.Load(),
		WrongReturnCode:   c.wrongReturnCode.Load(),
		UnmatchedReplies:  c.unmatched.Load(),
		UnexpectedEvents:  c.unexpected.Load(),
		Timeouts:          c.timeouts.Load(),
		EventsDropped:     c.eventsDropped.Load(),
		QueueDropped:      c.queueDropped.Load(),
		EventsFiltered:    c.eventsFiltered.Load(),
		SendErrors:        c.sendErrors.Load(),
		ConnectionsFailed: c.connections.Load(),
		HandshakesFailed:  c.handshakes.Load(),
		E2E: E2EStats{
			OK: c.e2e[e2e.OK].Load(), SomeLost: c.e2e[e2e.OKSomeLost].Load(), Repeated: c.e2e[e2e.Repeated].Load(),
			WrongSequence: c.e2e[e2e.WrongSequence].Load(), Error: c.e2e[e2e.Error].Load(),
			Dropped: c.e2eDropped.Load(),
		},
	}
}

// socketStats returns the sum of the counters of all UDP sockets.
func (n *Network) socketStats() endpoint.UDPStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := n.groups.Stats()
	for _, s := range n.systemSockets() {
		st := s.Stats()
		sum.Received += st.Received
		sum.Filtered += st.Filtered
		sum.Dropped += st.Dropped
	}
	return sum
}

// systemSockets are the UDP sockets of the network but those of event groups; one in
// memory has none. n.mu is held.
func (n *Network) systemSockets() (list []*endpoint.UDP) {
	sockets := []endpoint.PacketSocket{n.udp, n.discovery.unicast, n.discovery.multicast}
	for _, p := range n.udpPorts {
		sockets = append(sockets, p.udp)
	}
	for _, s := range sockets {
		if u, ok := s.(*endpoint.UDP); ok {
			list = append(list, u)
		}
	}
	return list
}

// DiscoveryStats returns a snapshot of the counters of service discovery.
func (n *Network) DiscoveryStats() sd.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine.Stats()
}
