package someipadapter_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

var (
	strange     = someip.InstanceKey{Service: 0x6001, Instance: 1, Major: 3}
	strangeName = opaque.Interface.MeshName(opaque.InstanceName(strange))
	byStrange   = grpc.CallAuthority(strangeName)
)

// The service that nobody described: it echoes, but for some methods; group 1 has
// an event and a field over UDP, group 2 an event over TCP.
const (
	strangeFail = 0x0002
	strangeTell = 0x0003
)

type strangeECU struct {
	offering *runtime.Offering
	told     chan string
}

func (s *strangeECU) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	switch {
	case r.Method == strangeFail:
		_ = r.Fail(0x2A, false, []byte("because"))
	case r.NoReturn:
		s.told <- string(r.Payload)
	default:
		_ = r.Respond(append(bytes.Clone(r.Payload), transport(r.Reliable)...))
	}
}

func transport(reliable bool) string {
	if reliable {
		return "/tcp"
	}
	return "/udp"
}

func offerStrange(tb testing.TB, n *runtime.Network) *strangeECU {
	tb.Helper()
	s := &strangeECU{told: make(chan string, 10)}
	var err error
	s.offering, err = n.Offer(runtime.ServiceConfig{
		Service: strange.Service, Instance: strange.Instance, Major: strange.Major, Minor: 9,
		UDPPort: runtime.AutoPort, TCPPort: runtime.AutoPort, Handler: s,
		Events: []runtime.EventConfig{
			{ID: 0x8001, Eventgroups: []uint16{1}},
			{ID: 0x8002, Eventgroups: []uint16{1}, Field: true},
			{ID: 0x8003, Eventgroups: []uint16{2}, Reliable: true},
		},
	})
	require.NoError(tb, err)
	require.NoError(tb, s.offering.Notify(0x8002, []byte("value"))) // whoever has subscribed already hears it too
	return s
}

// watchStrange watches an eventgroup on gRPC and returns its items.
func watchStrange(t *testing.T, g *gateway, group uint32, events ...uint32) (<-chan *carismav1.OpaqueWatchResponse, <-chan error, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := carismav1.NewOpaqueClient(g.conn).Watch(ctx, &carismav1.OpaqueWatchRequest{Eventgroup: group, Events: events}, byStrange)
	require.NoError(t, err)
	items, ended := make(chan *carismav1.OpaqueWatchResponse, 100), make(chan error, 1)
	go func() {
		for {
			it, err := stream.Recv()
			if err != nil {
				ended <- err
				return
			}
			items <- it
		}
	}()
	return items, ended, func() { cancel(); <-ended }
}

// An instance that no interface describes is called by ids and bytes, and its
// events are watched by eventgroup.
func TestUnknownOnGRPC(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d, climateName)
	ecu := offerStrange(t, d.host(t, 2))
	g.up(strangeName, true)
	client := carismav1.NewOpaqueClient(g.conn)

	about, err := client.Describe(t.Context(), &carismav1.OpaqueDescribeRequest{}, byStrange)
	require.NoError(t, err)
	require.EqualValues(t, 0x6001, about.GetService())
	require.EqualValues(t, 9, about.GetMinor())
	require.True(t, about.GetUdp() && about.GetTcp())
	require.Equal(t, "ecu", about.GetNetwork())

	for _, c := range []struct {
		size     int
		reliable bool
		over     string
	}{{0, false, "/udp"}, {0, true, "/tcp"}, {1400, false, ""}, {5000, false, "/tcp"}} {
		payload := bytes.Repeat([]byte{0xAB}, c.size)
		resp, err := client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 1, Payload: payload, Reliable: c.reliable}, byStrange)
		if c.over == "" { // the answer does not fit a datagram
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, string(payload)+c.over, string(resp.GetPayload()))
	}
	_, err = client.Send(t.Context(), &carismav1.OpaqueSendRequest{Method: strangeTell, Payload: []byte("psst")}, byStrange)
	require.NoError(t, err)
	require.Equal(t, "psst", receive(t, ecu.told))

	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: strangeFail}, byStrange)
	require.Equal(t, codes.Unknown, grpcstatus.Code(err))
	detail, ok := grpcstatus.Convert(err).Details()[0].(*carismav1.ErrorDetail)
	require.True(t, ok)
	require.EqualValues(t, 0x2A, detail.GetReturnCode())
	require.Equal(t, "because", string(detail.GetPayload()))
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 0x8001}, byStrange)
	require.Equal(t, codes.InvalidArgument, grpcstatus.Code(err))

	items, _, leave := watchStrange(t, g, 1)
	first := receive(t, items)
	require.EqualValues(t, 0x8002, first.GetEvent())
	require.Equal(t, "value", string(first.GetPayload()))
	require.True(t, first.GetMeta().GetInitial())
	eventually(t, func() bool { return ecu.offering.Subscribers(0x8001) == 1 }, "subscribed")
	require.NoError(t, ecu.offering.Notify(0x8001, []byte("bang")))
	require.Equal(t, "bang", string(receive(t, items).GetPayload()))

	// Who joins gets the current values too; an event does not come again.
	other, _, leaveOther := watchStrange(t, g, 1)
	require.EqualValues(t, 0x8002, receive(t, other).GetEvent())
	require.EqualValues(t, 0x8002, receive(t, items).GetEvent())
	require.NoError(t, ecu.offering.Notify(0x8001, []byte("bang again")))
	for _, watch := range []<-chan *carismav1.OpaqueWatchResponse{other, items} {
		require.Equal(t, "bang again", string(receive(t, watch).GetPayload()))
	}
	leaveOther()
	leave()

	overTCP, _, leave := watchStrange(t, g, 2)
	eventually(t, func() bool { return ecu.offering.Subscribers(0x8003) == 1 }, "subscribed")
	require.NoError(t, ecu.offering.Notify(0x8003, make([]byte, 3000)))
	it := receive(t, overTCP)
	require.Len(t, it.GetPayload(), 3000)
	require.True(t, it.GetReliable())
	leave()

	_, refused, _ := watchStrange(t, g, 7)
	require.Equal(t, codes.Unavailable, grpcstatus.Code(receive(t, refused)))

	_, ended, _ := watchStrange(t, g, 1)
	ecu.offering.Stop()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(receive(t, ended)))
	g.up(strangeName, false)
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 1}, byStrange)
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
	require.ErrorContains(t, err, "stopped by its server")
}

// An interface that becomes known makes its instances typed.
func TestUnknownBecomesKnown(t *testing.T) {
	d := newDomain(t)
	g := newGateway(t, d)
	_, err := newECU(d.host(t, 2))
	require.NoError(t, err)
	const opaqueName = "4001-0001-v1.carisma.v1.opaque"
	g.up(opaqueName, true)
	g.learn(climateName)
	g.up(leftName, true)
	g.up(opaqueName, false)
}

// between joins two gateways as the mesh does: what from serves, to imports.
func between(t *testing.T, from, to *gateway) {
	t.Helper()
	i, err := grpcadapter.NewImporter(grpcadapter.ImporterConfig{
		Egress: from.address, Wanted: func(grpcadapter.CatalogueEntry) bool { return true },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = i.Import(ctx, to.mesh.offers) })
	run.Go(func() {
		from.Watch(ctx, func(bridge.State) {
			var entries []grpcadapter.CatalogueEntry
			for _, b := range from.Plan() {
				if b.FromMesh() {
					continue
				}
				entries = append(entries, grpcadapter.CatalogueEntry{
					Name: b.MeshName(), Interface: b.Interface.FullName(), Instance: b.Name, Up: b.Up, Reason: b.Reason, Since: b.Since,
					Descriptors: b.Descriptors, Origin: b.Origin, NodeName: b.Origin.Node,
				})
			}
			i.SetCatalogue(entries)
		})
	})
	t.Cleanup(func() {
		cancel()
		run.Wait()
		require.NoError(t, i.Close())
	})
}

func onNetwork(t *testing.T, d domain, name string, host byte) *runtime.Network {
	t.Helper()
	s, err := d.startAs(name, host)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Network(name)
}

// allow exposes what comes from another SOME/IP network.
func allow(bridge.Instance, bridge.Network) string { return "" }

// mapped gives the strange instance other ids on another network.
func mapped(inst bridge.Instance) (someip.InstanceKey, bool) {
	return someip.InstanceKey{Service: 0x7001, Instance: 2, Major: uint8(inst.Origin.Major)}, inst.Origin.ServiceID == strange.Service
}

// A SOME/IP client on one network and a SOME/IP service on another, two gateways
// between them, and nobody knows the interface: payloads, errors, session ids of
// events and transports arrive as they were sent.
func TestUnknownOnAnotherNetwork(t *testing.T) {
	rear, front := newDomain(t), newDomain(t)
	g1 := newGatewayOn(t, onNetwork(t, rear, "rear-ecu", 1), "rear", nil, nil)
	g2 := newGatewayOn(t, onNetwork(t, front, "front-ecu", 1), "front", allow, mapped)
	between(t, g1, g2)
	ecu := offerStrange(t, onNetwork(t, rear, "rear-ecu", 2))

	n := onNetwork(t, front, "front-ecu", 3)
	c, err := n.Client(someip.InstanceKey{Service: 0x7001, Instance: 2, Major: strange.Major})
	require.NoError(t, err)
	defer c.Close()
	eventually(t, func() bool { return c.Availability().Up }, "offered on the other network")
	require.EqualValues(t, 9, c.Availability().Minor)
	for _, reliable := range []bool{false, true} {
		resp, err := c.Call(t.Context(), 1, reliable, []byte{0, 255, 7})
		require.NoError(t, err)
		require.Equal(t, "\x00\xff\x07"+transport(reliable), string(resp.Payload))
	}
	resp, err := c.Call(t.Context(), strangeFail, false, nil)
	require.NoError(t, err)
	require.EqualValues(t, 0x2A, resp.Code)
	require.False(t, resp.Exception)
	require.Equal(t, "because", string(resp.Payload))
	require.NoError(t, c.Send(t.Context(), strangeTell, true, []byte("psst")))
	require.Equal(t, "psst", receive(t, ecu.told))

	type note struct {
		event, session uint16
		payload        string
	}
	subscribe := func(c *runtime.Client, group uint16) (*runtime.Subscription, chan note) {
		notes := make(chan note, 100)
		sub, err := c.Subscribe(context.Background(), runtime.SubscribeConfig{
			Eventgroup: group, Unreliable: true, Reliable: group == 2,
			OnEvent: func(n runtime.Notification) { notes <- note{n.Event, n.Session, string(n.Payload)} },
		})
		require.NoError(t, err)
		return sub, notes
	}
	sub, notes := subscribe(c, 1)
	require.Equal(t, note{0x8002, 1, "value"}, receive(t, notes), "the initial event of the field")
	eventually(t, func() bool { return ecu.offering.Subscribers(0x8001) == 1 }, "subscribed")
	for i := range uint16(3) {
		require.NoError(t, ecu.offering.Notify(0x8001, []byte("bang")))
		require.Equal(t, note{0x8001, i + 1, "bang"}, receive(t, notes))
	}

	// Another host that subscribes gets the field's value too, and only that.
	n4 := onNetwork(t, front, "front-ecu", 4)
	c4, err := n4.Client(c.Key())
	require.NoError(t, err)
	defer c4.Close()
	sub4, notes4 := subscribe(c4, 1)
	require.Equal(t, "value", receive(t, notes4).payload)
	require.Equal(t, "value", receive(t, notes).payload)
	sub4.Close()

	// A second eventgroup, over TCP; the first goes on, each event once.
	sub2, _ := subscribe(c, 2)
	eventually(t, func() bool { return sub2.Status().State == runtime.SubscriptionActive }, "active")
	require.NoError(t, ecu.offering.Notify(0x8003, []byte("big")))
	require.NoError(t, ecu.offering.Notify(0x8001, []byte("small")))
	seen := map[string]int{}
	for range 2 {
		seen[receive(t, notes).payload]++
	}
	require.Equal(t, map[string]int{"big": 1, "small": 1}, seen)
	sub2.Close()

	// An eventgroup that the service does not have.
	sub7, _ := subscribe(c, 7)
	eventually(t, func() bool { return sub7.Status().State == runtime.SubscriptionRefused }, "refused")
	sub7.Close()

	// The service goes, and with it the offer; then all is as it was.
	ecu.offering.Stop()
	eventually(t, func() bool { return !c.Availability().Up }, "withdrawn")
	ecu = offerStrange(t, onNetwork(t, rear, "rear-ecu", 5))
	eventually(t, func() bool { return c.Availability().Up }, "offered again")
	for receive(t, notes).payload != "value" {
	}
	eventually(t, func() bool { return ecu.offering.Subscribers(0x8001) == 1 }, "one subscription for all")
	sub.Close()
	eventually(t, func() bool { return ecu.offering.Subscribers(0x8001) == 0 }, "none")
}
