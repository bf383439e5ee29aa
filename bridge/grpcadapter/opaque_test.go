package grpcadapter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
)

// echo is an opaque instance that answers with what it gets, and has eventgroup 1.
type echo struct{}

func (echo) Interface() *model.Interface { return opaque.Interface }

func (echo) Watch(context.Context, *model.Event, bridge.Sink) error {
	return status.New(codes.Unimplemented, "a request is needed")
}

func (echo) Invoke(_ context.Context, m *model.Method, in []byte) ([]byte, error) {
	r, err := opaque.ParseRequest(in)
	switch {
	case err != nil:
		return nil, status.InvalidArgument("", err.Error())
	case m == opaque.Send:
		return nil, nil
	case r.Method == 0x20:
		return nil, status.FromSOMEIP(0x23, true, []byte("why"), nil)
	}
	return opaque.AppendResponse(nil, r.Payload), nil
}

func (echo) Subscribe(ctx context.Context, _ *model.Event, in []byte, opened func(), sink bridge.Sink) error {
	s, err := opaque.ParseSubscription(in)
	if err != nil || s.Eventgroup != 1 {
		return status.Unavailable("refused", time.Time{})
	}
	opened()
	sink(bridge.Item{Payload: opaque.Event{ID: 0x8001, Payload: []byte("e")}.Append(nil), Session: 7, Initial: true})
	<-ctx.Done()
	return context.Cause(ctx)
}

func opaqueInstance(id uint16) bridge.Instance {
	key := someip.InstanceKey{Service: 0x6001, Instance: id, Major: 1}
	return bridge.Instance{
		Interface: opaque.Interface, Name: opaque.InstanceName(key), Descriptors: opaque.Descriptors(),
		Origin: bridge.Origin{
			Protocol: bridge.SOMEIP, Network: "rear-ecu", ServiceID: key.Service, InstanceID: id, Major: 1, Node: "rear",
		},
	}
}

// exposeOpaque exposes an opaque instance for the time of the test.
func (s *served) exposeOpaque(inst bridge.Instance) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.t.Cleanup(cancel)
	s.run.Go(func() { _ = s.Expose(ctx, inst, echo{}) })
	s.eventually(func() bool { return s.Serves(inst.MeshName()) })
}

// The generic service: by authority or header, never by default, with the errors
// of SOME/IP, and a watch that opens when the instance has agreed.
func TestOpaque(t *testing.T) {
	s := serve(t)
	inst := opaqueInstance(1)
	s.exposeOpaque(inst)
	client := carismav1.NewOpaqueClient(s.dial())
	authority := grpc.CallAuthority("6001-0001-v1.carisma.v1.opaque")

	resp, err := client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 1, Payload: []byte{1, 2}}, authority)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2}, resp.GetPayload())
	_, err = client.Send(t.Context(), &carismav1.OpaqueSendRequest{Method: 1}, authority)
	require.NoError(t, err)
	byHeader := metadata.AppendToOutgoingContext(t.Context(), grpcadapter.InstanceHeader, "6001-0001-v1")
	_, err = client.Call(byHeader, &carismav1.OpaqueCallRequest{Method: 1})
	require.NoError(t, err)

	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 1})
	require.Equal(t, codes.FailedPrecondition, grpcstatus.Code(err), "no instance is the default")
	require.ErrorContains(t, err, "6001-0001-v1")
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 0x9000}, authority)
	require.Equal(t, codes.InvalidArgument, grpcstatus.Code(err))
	_, err = client.Call(t.Context(), &carismav1.OpaqueCallRequest{Method: 0x20}, authority)
	var detail *carismav1.ErrorDetail
	for _, d := range grpcstatus.Convert(err).Details() {
		detail, _ = d.(*carismav1.ErrorDetail)
	}
	require.EqualValues(t, 0x23, detail.GetReturnCode())
	require.Equal(t, []byte("why"), detail.GetPayload())

	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.Watch(ctx, &carismav1.OpaqueWatchRequest{Eventgroup: 1}, authority)
	require.NoError(t, err)
	item, err := stream.Recv()
	require.NoError(t, err)
	require.EqualValues(t, 0x8001, item.GetEvent())
	require.Equal(t, []byte("e"), item.GetPayload())
	require.EqualValues(t, 7, item.GetMeta().GetSession())
	require.True(t, item.GetMeta().GetInitial())
	cancel()
	_, err = stream.Recv()
	require.Equal(t, codes.Canceled, grpcstatus.Code(err))
	stream, err = client.Watch(t.Context(), &carismav1.OpaqueWatchRequest{Eventgroup: 2}, authority)
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
}

// What another gateway serves is imported where it is wanted, and only there.
func TestOpaqueImport(t *testing.T) {
	s := serve(t)
	wanted, other := opaqueInstance(1), opaqueInstance(2)
	s.exposeOpaque(wanted)
	i, err := grpcadapter.NewImporter(grpcadapter.ImporterConfig{
		Egress: s.addr, Wanted: func(e grpcadapter.CatalogueEntry) bool { return e.Origin.InstanceID == 1 },
	})
	require.NoError(t, err)
	defer i.Close()
	var entries []grpcadapter.CatalogueEntry
	for _, inst := range []bridge.Instance{wanted, other} {
		entries = append(entries, grpcadapter.CatalogueEntry{
			Name: inst.MeshName(), Interface: opaque.Name, Instance: inst.Name, Up: true,
			Descriptors: inst.Descriptors, Origin: inst.Origin, NodeName: "rear",
		})
	}
	i.SetCatalogue(entries)
	offers := make(chan bridge.Offer, 4)
	s.run.Go(func() { _ = i.Import(s.ctx, offers) })
	o := <-offers
	require.Empty(t, offers)
	require.Equal(t, wanted, o.Instance)

	svc := o.Service.(bridge.Subscribable)
	out, err := svc.Invoke(t.Context(), opaque.Call, opaque.Request{Method: 1, Payload: []byte("x")}.Append(nil))
	require.NoError(t, err)
	require.Equal(t, opaque.AppendResponse(nil, []byte("x")), out)
	_, err = svc.Invoke(t.Context(), opaque.Call, opaque.Request{Method: 0x20}.Append(nil))
	code, payload := status.FromGRPC(err).SOMEIP(false)
	require.EqualValues(t, 0x23, code)
	require.Equal(t, "why", string(payload))

	ctx, cancel := context.WithCancel(t.Context())
	opened, items, ended := make(chan struct{}), make(chan bridge.Item, 1), make(chan error)
	go func() {
		ended <- svc.Subscribe(ctx, opaque.Watch, opaque.Subscription{Eventgroup: 1}.Append(nil),
			func() { close(opened) }, func(it bridge.Item) { items <- it })
	}()
	<-opened
	it := <-items
	e, err := opaque.ParseEvent(it.Payload)
	require.NoError(t, err)
	require.Equal(t, opaque.Event{ID: 0x8001, Payload: []byte("e")}, e)
	require.EqualValues(t, 7, it.Session)
	cancel()
	require.Error(t, <-ended)
	err = svc.Subscribe(t.Context(), opaque.Watch, opaque.Subscription{Eventgroup: 2}.Append(nil),
		func() { t.Error("opened") }, func(bridge.Item) {})
	require.Equal(t, codes.Unavailable, status.FromGRPC(err).Code)
}
