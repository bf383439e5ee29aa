package opaque_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	protopb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
)

var key = someip.InstanceKey{Service: 0x6001, Instance: 0x00A1, Major: 12}

func TestNames(t *testing.T) {
	t.Parallel()
	name := opaque.InstanceName(key)
	require.Equal(t, "6001-00a1-v12", name)
	require.Equal(t, "6001-00a1-v12.carisma.v1.opaque", opaque.Interface.MeshName(name))
	require.Equal(t, opaque.Name, opaque.Interface.FullName())
	back, ok := opaque.ParseInstanceName(name)
	require.True(t, ok)
	require.Equal(t, key, back)
	for _, bad := range []string{"", "6001-00a1", "6001-00A1-v12", "6001-00a1-v300", "x-y-z", "6001-00a1-12", "06001-00a1-v12", "6001-00a1-v012"} {
		_, ok := opaque.ParseInstanceName(bad)
		require.False(t, ok, bad)
	}
}

// The descriptors are complete, and have the elements of the interface.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	fds := &descriptorpb.FileDescriptorSet{}
	require.NoError(t, protopb.Unmarshal(opaque.Descriptors(), fds))
	files, err := protodesc.NewFiles(fds)
	require.NoError(t, err)
	d, err := files.FindDescriptorByName(opaque.Name)
	require.NoError(t, err)
	rpcs := d.(protoreflect.ServiceDescriptor).Methods()
	require.Equal(t, len(opaque.Interface.Methods)+1, rpcs.Len())
	for i, m := range opaque.Interface.Methods {
		require.Equal(t, string(rpcs.Get(i).Name()), m.RPC)
		require.Equal(t, string(rpcs.Get(i).Input().FullName()), m.In.Name)
		require.Equal(t, string(rpcs.Get(i).Output().FullName()), m.Out.Name)
	}
	watch := rpcs.ByName("Watch")
	require.Equal(t, string(watch.Output().FullName()), opaque.Watch.Args.Name)
	require.EqualValues(t, opaque.Watch.MetaNumber, watch.Output().Fields().ByName("meta").Number())
	// A reader of interfaces takes them too, for whom carisma's own are none.
	_, err = proto.FromDescriptors(fds)
	require.NoError(t, err)
}

// What is written by hand is what the generated code reads, and the reverse.
func TestWire(t *testing.T) {
	t.Parallel()
	marshal := func(m protopb.Message) []byte {
		b, err := protopb.Marshal(m)
		require.NoError(t, err)
		return b
	}
	for _, r := range []opaque.Request{{Method: 0x7FFE, Payload: []byte{0, 1, 2}, Reliable: true}, {Method: 1}} {
		m := &carismav1.OpaqueCallRequest{Method: uint32(r.Method), Payload: r.Payload, Reliable: r.Reliable}
		require.Equal(t, marshal(m), r.Append(nil))
		got, err := opaque.ParseRequest(marshal(m))
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
	e := opaque.Event{ID: 0x8001, Payload: []byte("x"), Reliable: true}
	require.Equal(t, marshal(&carismav1.OpaqueWatchResponse{Event: 0x8001, Payload: []byte("x"), Reliable: true}), e.Append(nil))
	withMeta := marshal(&carismav1.OpaqueWatchResponse{
		Event: 0x8001, Payload: []byte("x"), Reliable: true, Meta: &carismav1.EventMeta{Session: 1},
	})
	got, err := opaque.ParseEvent(withMeta)
	require.NoError(t, err)
	require.Equal(t, e, got)

	payload, err := opaque.ParseResponse(marshal(&carismav1.OpaqueCallResponse{Payload: []byte{7}}))
	require.NoError(t, err)
	require.Equal(t, []byte{7}, payload)
	require.Equal(t, marshal(&carismav1.OpaqueCallResponse{Payload: []byte{7}}), opaque.AppendResponse(nil, []byte{7}))

	s := opaque.Subscription{Eventgroup: 5, Events: []uint16{0x8001, 0xFFFE}}
	m := &carismav1.OpaqueWatchRequest{Eventgroup: 5, Events: []uint32{0x8001, 0xFFFE}}
	sub, err := opaque.ParseSubscription(marshal(m))
	require.NoError(t, err)
	require.Equal(t, s, sub)
	back := &carismav1.OpaqueWatchRequest{}
	require.NoError(t, protopb.Unmarshal(s.Append(nil), back))
	require.True(t, protopb.Equal(m, back))
	sub, err = opaque.ParseSubscription(s.Append(nil))
	require.NoError(t, err)
	require.Equal(t, s, sub)

	d := opaque.Description{Key: key, Minor: 9, Network: "rear-ecu", UDP: true}
	require.Equal(t, marshal(&carismav1.OpaqueDescribeResponse{
		Service: 0x6001, Instance: 0x00A1, Major: 12, Minor: 9, Network: "rear-ecu", Udp: true,
	}), d.Append(nil))
	described, err := opaque.ParseDescription(d.Append(nil))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(d, described))
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, method := range []uint16{0, 0x7FFF, 0x8001} {
		_, err := opaque.ParseRequest(opaque.Request{Method: method}.Append(nil))
		require.ErrorIs(t, err, opaque.ErrMethod)
	}
	_, err := opaque.ParseEvent(opaque.Event{ID: 1}.Append(nil))
	require.ErrorIs(t, err, opaque.ErrEvent)
	_, err = opaque.ParseSubscription(nil)
	require.ErrorIs(t, err, opaque.ErrEventgroup)
	_, err = opaque.ParseSubscription(opaque.Subscription{Eventgroup: 1, Events: []uint16{1}}.Append(nil))
	require.ErrorIs(t, err, opaque.ErrEvent)
	_, err = opaque.ParseRequest([]byte{0x08})
	require.ErrorIs(t, err, opaque.ErrMalformed)
	_, err = opaque.ParseSubscription([]byte{0x12, 1, 0x80})
	require.ErrorIs(t, err, opaque.ErrMalformed)
}

func FuzzParse(f *testing.F) {
	f.Add(opaque.Request{Method: 1, Payload: []byte("x"), Reliable: true}.Append(nil))
	f.Add(opaque.Subscription{Eventgroup: 1, Events: []uint16{0x8001}}.Append(nil))
	f.Add([]byte{0x12, 2, 0x81, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := opaque.ParseRequest(b); err == nil {
			again, err := opaque.ParseRequest(r.Append(nil))
			require.NoError(t, err)
			require.Equal(t, r.Method, again.Method)
			require.Equal(t, string(r.Payload), string(again.Payload))
		}
		if s, err := opaque.ParseSubscription(b); err == nil {
			again, err := opaque.ParseSubscription(s.Append(nil))
			require.NoError(t, err)
			require.Equal(t, s, again)
		}
		_, _ = opaque.ParseEvent(b)
		_, _ = opaque.ParseResponse(b)
		_, _ = opaque.ParseDescription(b)
	})
}
