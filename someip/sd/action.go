package sd

import (
	"net/netip"

	"carisma.dev/gateway/someip"
)

// Action is something that the owner of a Machine has to do or to know. The
// types of this file are all there are. Actions must be carried out in the order
// in which they are returned: a Send of Acks comes before the SubscriberAdded
// that lets initial events go, an Available before the Send of the Subscribes
// that it triggers.
type Action interface{ action() }

// Send asks to send a datagram from the SD port of the network.
type Send struct {
	To        netip.AddrPort
	Multicast bool   // To is the group
	Data      []byte // belongs to the receiver of the action
}

// Available tells that an instance is offered by a peer. For an instance that is
// available already it replaces what was known of everything but the endpoints.
type Available struct {
	Key           someip.InstanceKey
	Minor         uint32
	Endpoints     Endpoints
	Peer          netip.AddrPort // SD endpoint of the peer
	Configuration []string
	LoadBalancing *LoadBalancing
}

// Unavailable tells that an available instance is no more. Sockets and endpoint
// data of it are to be forgotten (CL-8).
type Unavailable struct {
	Key    someip.InstanceKey
	Peer   netip.AddrPort
	Reason Reason
}

// OfferConflict tells that a peer offers what we offer (Local), or what another
// peer still offers elsewhere. Its offer is ignored. It is told once per
// instance and peer while the conflict lasts.
type OfferConflict struct {
	Key   someip.InstanceKey
	Peer  netip.AddrPort
	Local bool
	// Configuration is that of the peer's offer, of a Local conflict.
	Configuration []string
}

// OwnAddressClaimed tells that a message came from our own address, or that an
// entry names it as that of the peer: another host was given the address, another
// stack runs on it (RB-9), or a peer is wrong. It is ignored, counted in
// Stats.Own or Stats.OwnEndpoint, and told once a minute of each peer.
type OwnAddressClaimed struct {
	Peer    netip.AddrPort     // where the message came from
	Claimed netip.AddrPort     // the address that is ours
	Key     someip.InstanceKey // of the entry; the zero value for a whole message
}

// NeedConnection asks for a TCP connection to an instance, because a wanted
// subscription needs it. Answer with Connected, or with Disconnected if it cannot
// be had; it is asked for again on a later offer. An existing connection will do,
// but if Refused is set the server did not know it: check it (SUB-11).
type NeedConnection struct {
	Server  netip.AddrPort
	Refused bool
}

// SubscriptionAcked tells that events of an eventgroup will come. It is told once
// per subscription, not per renewal. Multicast is valid if they may come by that
// group.
type SubscriptionAcked struct {
	Key       SubscriptionKey
	Multicast netip.AddrPort
}

// SubscriptionNacked tells that the server refused. The next offer is another
// try.
type SubscriptionNacked struct {
	Key SubscriptionKey
}

// SubscriptionMismatch tells that the instance is offered, but over none of the
// protocols that the subscription wants (case 91). The next offer is another try.
type SubscriptionMismatch struct {
	Key     SubscriptionKey
	Offered Endpoints
}

// SubscriptionLost tells that an acknowledged subscription ended. It is renewed
// by itself when the instance is offered again.
type SubscriptionLost struct {
	Key    SubscriptionKey
	Reason Reason
}

// Subscriber is a peer that subscribed to an eventgroup of ours.
type Subscriber struct {
	Instance   someip.InstanceKey
	Eventgroup uint16
	Peer       netip.AddrPort // SD endpoint of the peer
	Counter    uint8
	Endpoints  Endpoints // those that the eventgroup uses
}

// SubscriberAdded tells that a subscriber wants events. If Initial is set it is
// to get the current values of the fields of the eventgroup now, by unicast
// (SUB-7). A renewal is not told, unless it asks for initial events.
type SubscriberAdded struct {
	Subscriber
	Initial bool
}

// SubscribeAsked asks whether an eventgroup of an instance offered with
// AnyEventgroup exists and its events can be had. It is to be answered by
// AnswerSubscribe; until then the subscriber waits, for as long as its Subscribe
// holds. That it gave up is told by SubscriberRemoved.
type SubscribeAsked struct{ Subscriber }

// SubscriberRemoved tells that a subscriber gets no more events.
type SubscriberRemoved struct {
	Subscriber
	Reason Reason
}

// PeerRebooted tells that a peer restarted: TCP connections with it are to be
// reset and calls to it to be ended (RB-6). What was known of it is reported as
// lost by further actions.
type PeerRebooted struct {
	Peer netip.AddrPort
}

// JoinMulticast asks to receive the events that are sent to a group.
type JoinMulticast struct{ Group netip.AddrPort }

// LeaveMulticast is the opposite of JoinMulticast.
type LeaveMulticast struct{ Group netip.AddrPort }

// RejoinDiscovery asks to leave the group of service discovery and to join it
// again: peers should have been heard there and were not (case 70).
type RejoinDiscovery struct{}

func (Send) action()                 {}
func (Available) action()            {}
func (Unavailable) action()          {}
func (OfferConflict) action()        {}
func (OwnAddressClaimed) action()    {}
func (NeedConnection) action()       {}
func (SubscriptionAcked) action()    {}
func (SubscriptionNacked) action()   {}
func (SubscriptionMismatch) action() {}
func (SubscriptionLost) action()     {}
func (SubscriberAdded) action()      {}
func (SubscribeAsked) action()       {}
func (SubscriberRemoved) action()    {}
func (PeerRebooted) action()         {}
func (JoinMulticast) action()        {}
func (LeaveMulticast) action()       {}
func (RejoinDiscovery) action()      {}
