package runtime_test

import (
	"net/netip"
	"testing"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

// peer is a scripted peer that knows the instance of the tests.
type peer struct {
	*someiptest.Peer

	to netip.AddrPort // whom it talks to
}

func newPeer(tb testing.TB, local netip.AddrPort) peer {
	tb.Helper()
	return peer{Peer: someiptest.NewPeer(tb, local)}
}

// offer offers the instance of the tests, reached over UDP, to host 2.
func (p peer) offer(d *someiptest.Domain, at netip.AddrPort, session uint16) {
	p.offerAt(d, session, sd.EndpointOption(at, sd.UDP))
}

func (p peer) offerAt(d *someiptest.Domain, session uint16, at ...sd.Option) {
	p.SendSD(d.SD(2), session, sd.Entry{
		Type: sd.OfferService, Service: key.Service, Instance: key.Instance, Major: key.Major, TTL: 30,
	}, at...)
}

// subscribe asks an offering of host 1 for its UDP events.
func (p peer) subscribe(d *someiptest.Domain, o *runtime.Offering, at netip.AddrPort) {
	p.SendSD(d.SD(1), 1, sd.Entry{
		Type: sd.Subscribe, Service: o.Key().Service, Instance: o.Key().Instance, Major: o.Key().Major, TTL: 30, Eventgroup: group,
	}, sd.EndpointOption(at, sd.UDP))
}

// ack acknowledges a Subscribe of host 2.
func (p peer) ack(d *someiptest.Domain, e sd.Entry, session uint16, opts ...sd.Option) {
	e.Type, e.Index1, e.Count1 = sd.SubscribeAck, 0, 0
	p.SendSD(d.SD(2), session, e, opts...)
}

// next returns the next message.
func (p peer) next() someip.Message {
	m, _ := p.ReceiveOne()
	return m
}
