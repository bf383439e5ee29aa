package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// strange is a service that no file of the vehicle describes.
var strange = someip.InstanceKey{Service: 0x6001, Instance: 1, Major: 1}

const strangeName = "6001-0001-v1.carisma.v1.opaque"

// strangeECU echoes, and its eventgroup 1 has an event and a field.
type strangeECU struct{ told chan string }

func (s strangeECU) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	switch {
	case r.NoReturn:
		s.told <- string(r.Payload)
	case r.Method == 2:
		_ = r.Fail(0x2B, true, []byte{9, 8})
	default:
		_ = r.Respond(r.Payload)
	}
}

func offerStrange(t *testing.T, n *runtime.Network) (*runtime.Offering, strangeECU) {
	t.Helper()
	s := strangeECU{make(chan string, 8)}
	port := freePorts(t, n.Address().Addr().String(), 1)[0]
	o, err := n.Offer(runtime.ServiceConfig{
		Service: strange.Service, Instance: strange.Instance, Major: strange.Major, Minor: 4,
		UDPPort: port, TCPPort: port, Handler: s,
		Events: []runtime.EventConfig{{ID: 0x8001, Eventgroups: []uint16{1}}, {ID: 0x8002, Eventgroups: []uint16{1}, Field: true}},
	})
	require.NoError(t, err)
	require.NoError(t, o.Notify(0x8002, []byte("value")))
	return o, s
}

// Issue 4, item 3: a service without a known interface is found and called by ids
// and bytes from another HPC, through two gateways and two Envoys; a SOME/IP client
// on that HPC's network uses it under ids of its own, payload untouched (CAR-45).
func TestUnknownInterface(t *testing.T) {
	v := newVehicle(t)
	sdPort := freePorts(t, "127.78.2.1", 1)[0]
	v.center = v.node(t, "center", "central", "127.78.0.1", fmt.Sprintf(`
networks:
  - name: front-ecu
    address: 127.78.2.1/24
    sd: {group: 224.244.78.2, port: %d, initial_delay: 0ms-10ms, repetitions_base_delay: 20ms}
    client_ids: 0x1200-0x12ff
    ports: 30700-30799
    expose:
      someip:
        - {network: rear-ecu, service: 0x6001, instance: 1, as: {service: 0x7001, instance: 2}}
`, sdPort))
	v.center.start(t)
	v.rear.start(t)
	ecu := v.host(t, "127.78.1.2", runtime.Range{First: 0x1400, Last: 0x14ff})
	offering, told := offerStrange(t, ecu)

	// gRPC, from center.
	conn := dial(t, v.center.egress)
	client := carismav1.NewOpaqueClient(conn)
	authority := grpc.CallAuthority(strangeName)
	payload := []byte{0, 1, 254, 255}
	eventually(t, func(ctx context.Context) error {
		resp, err := client.Call(ctx, &carismav1.OpaqueCallRequest{Method: 1, Payload: payload}, authority)
		if err == nil {
			require.Equal(t, payload, resp.GetPayload())
		}
		return err
	})
	byHeader := metadata.AppendToOutgoingContext(t.Context(), api.InstanceHeader, "6001-0001-v1")
	_, err := client.Call(byHeader, &carismav1.OpaqueCallRequest{Method: 1})
	require.NoError(t, err)
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 1})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "6001-0001-v1")
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 2}, authority)
	detail := errorDetail(t, err)
	require.EqualValues(t, 0x2B, detail.GetReturnCode())
	require.Equal(t, []byte{9, 8}, detail.GetPayload())
	require.Contains(t, listServices(t, conn), "carisma.v1.Opaque")

	watch, err := client.Watch(t.Context(), &carismav1.OpaqueWatchRequest{Eventgroup: 1, Events: []uint32{0x8002}}, authority)
	require.NoError(t, err)
	item, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, "value", string(item.GetPayload()))
	refused, err := client.Watch(t.Context(), &carismav1.OpaqueWatchRequest{Eventgroup: 7}, authority)
	require.NoError(t, err)
	_, err = refused.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Contains(t, errorDetail(t, err).GetReason(), "refused")

	// SOME/IP, on center's network.
	legacy := onNetwork(t, "front-ecu", "127.78.2.3", "224.244.78.2", sdPort, runtime.Range{First: 0x1600, Last: 0x16ff})
	c, err := legacy.Client(runtime.InstanceKey{Service: 0x7001, Instance: 2, Major: 1})
	require.NoError(t, err)
	defer c.Close()
	for _, reliable := range []bool{false, true} {
		eventually(t, func(ctx context.Context) error {
			resp, err := c.Call(ctx, 1, reliable, payload)
			if err == nil {
				require.Equal(t, payload, resp.Payload)
			}
			return err
		})
	}
	big := bytes.Repeat([]byte{0xA5}, 100_000)
	resp, err := c.Call(t.Context(), 1, true, big)
	require.NoError(t, err)
	require.Equal(t, big, resp.Payload)
	resp, err = c.Call(t.Context(), 2, false, nil)
	require.NoError(t, err)
	require.EqualValues(t, 0x2B, resp.Code)
	require.Equal(t, []byte{9, 8}, resp.Payload)
	require.NoError(t, c.Send(t.Context(), 3, false, []byte("psst")))
	require.Equal(t, "psst", await(t, told.told))

	notes := make(chan string, 16)
	sub, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: 1, Unreliable: true,
		OnEvent: func(n runtime.Notification) { notes <- fmt.Sprintf("%04x %s", n.Event, n.Payload) },
	})
	require.NoError(t, err)
	defer sub.Close()
	require.Equal(t, "8002 value", await(t, notes))
	require.NoError(t, offering.Notify(0x8001, []byte("bang")))
	require.Equal(t, "8001 bang", await(t, notes))

	// It goes: the offer is withdrawn, gRPC callers are told why; it comes again.
	offering.Stop()
	require.Eventually(t, func() bool { return !c.Availability().Up }, patience, time.Millisecond)
	for err = nil; err == nil; {
		_, err = watch.Recv()
	}
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Contains(t, errorDetail(t, err).GetReason(), "stopped")
	offering, _ = offerStrange(t, ecu)
	require.Equal(t, "8002 value", await(t, notes), "the client subscribes again by itself")

	require.NoError(t, offering.Notify(0x8001, nil))
	require.Equal(t, "8001 ", await(t, notes))
	s := v.center.status(t)
	require.True(t, slices.ContainsFunc(s.Instances, func(i gateway.InstanceStatus) bool {
		return i.Name == strangeName && i.Exposures[0].State == "exposed"
	}))
}
