package runtime_test

import (
	"net/netip"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
)

// sendSD sends a service discovery message by unicast.
func (p peer) sendSD(to netip.AddrPort, session uint16, e sd.Entry, opts ...sd.Option) {
	p.tb.Helper()
	e.Count1 = uint8(len(opts))
	m := sd.Message{Session: session, Flags: sd.FlagReboot | sd.FlagUnicast, Entries: []sd.Entry{e}, Options: opts}
	b, err := m.Append(nil)
	require.NoError(p.tb, err)
	p.send(to, b)
}

// offer offers the instance of the tests, reached over UDP, to host 2.
func (p peer) offer(d domain, at netip.AddrPort, session uint16) {
	p.tb.Helper()
	p.offerAt(d, session, sd.EndpointOption(at, sd.UDP))
}

func (p peer) offerAt(d domain, session uint16, at ...sd.Option) {
	p.tb.Helper()
	p.sendSD(netip.AddrPortFrom(d.addr(2), d.port), session, sd.Entry{
		Type: sd.OfferService, Service: key.Service, Instance: key.Instance, Major: key.Major, TTL: 30,
	}, at...)
}

// subscribe asks an offering of host 1 for its UDP events.
func (p peer) subscribe(d domain, o *runtime.Offering, at netip.AddrPort) {
	p.tb.Helper()
	p.sendSD(netip.AddrPortFrom(d.addr(1), d.port), 1, sd.Entry{
		Type: sd.Subscribe, Service: o.Key().Service, Instance: o.Key().Instance, Major: o.Key().Major, TTL: 30, Eventgroup: group,
	}, sd.EndpointOption(at, sd.UDP))
}

// ack acknowledges a Subscribe of host 2.
func (p peer) ack(d domain, e sd.Entry, session uint16, opts ...sd.Option) {
	p.tb.Helper()
	e.Type, e.Index1, e.Count1 = sd.SubscribeAck, 0, 0
	p.sendSD(netip.AddrPortFrom(d.addr(2), d.port), session, e, opts...)
}

// receiveSD waits for a service discovery message with an entry of a type.
func (p peer) receiveSD(want sd.EntryType) (sd.Entry, []sd.Option) {
	p.tb.Helper()
	for {
		msgs, _ := p.receive()
		for _, raw := range msgs {
			m, _, err := sd.Parse(raw.Append(nil))
			require.NoError(p.tb, err)
			for _, e := range m.Entries {
				if e.Type == want {
					return e, m.Options
				}
			}
		}
	}
}

// receiveRequest waits for a request.
func (p peer) receiveRequest() (someip.Message, netip.AddrPort) {
	p.tb.Helper()
	msgs, from := p.receive()
	require.Len(p.tb, msgs, 1)
	require.Equal(p.tb, someip.Request, msgs[0].Type)
	return msgs[0], from
}
