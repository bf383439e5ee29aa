package someipadapter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/someipadapter"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	ifaceproto "carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/tp"
)

var cameraKey = runtime.InstanceKey{Service: 0x6101, Instance: 1, Major: 1}

func camera(t *testing.T) *model.Interface {
	t.Helper()
	set, err := ifaceproto.Load("testdata")
	require.NoError(t, err)
	iface := set.Interface("test.camera.v1.Camera")
	require.NotNil(t, iface)
	return iface
}

// cameraDeployment is what the options of the interface say, written by hand. The data
// ids of answers and events are off by wrong.
func cameraDeployment(wrong uint32) runtime.Deployment {
	protect := func(profile e2e.Profile, id uint32) *runtime.E2EConfig {
		return &runtime.E2EConfig{Config: e2e.Config{Profile: profile, DataID: id}, Drop: true}
	}
	return runtime.Deployment{
		Instance:  cameraKey,
		Requests:  map[uint16]runtime.MessageConfig{1: {TP: &tp.Rule{}, E2E: protect(e2e.P07, 0x11)}},
		Responses: map[uint16]runtime.MessageConfig{1: {TP: &tp.Rule{}, E2E: protect(e2e.P04, 0x12+wrong)}},
		Events: map[uint16]runtime.MessageConfig{
			0x8001: {TP: &tp.Rule{}, E2E: protect(e2e.P04, 0x13+wrong)},
			0x8002: {E2E: protect(e2e.P05, 0x14+wrong)},
		},
	}
}

// cameraECU offers a camera that stores whatever it gets and answers the same.
func cameraECU(t *testing.T, n *runtime.Network, wrong uint32) *runtime.Offering {
	t.Helper()
	require.NoError(t, n.Deploy(cameraDeployment(wrong)))
	o, err := n.Offer(runtime.ServiceConfig{
		Service: cameraKey.Service, Instance: cameraKey.Instance, Major: cameraKey.Major, UDPPort: runtime.AutoPort,
		Events: []runtime.EventConfig{{ID: 0x8001, Eventgroups: []uint16{1}}, {ID: 0x8002, Eventgroups: []uint16{2}}},
		Handler: runtime.HandlerFunc(func(_ context.Context, r *runtime.Request) {
			_ = r.Respond(r.Payload)
		}),
	})
	require.NoError(t, err)
	return o
}

// importing runs the import of a network until the test ends.
func importing(t *testing.T, n *runtime.Network, interfaces *bridge.Interfaces) <-chan bridge.Offer {
	t.Helper()
	adapter := someipadapter.New(someipadapter.Config{Network: n, Interfaces: interfaces})
	ctx, cancel := context.WithCancel(context.Background())
	offers := make(chan bridge.Offer, 8)
	var run sync.WaitGroup
	run.Go(func() { _ = adapter.Import(ctx, offers) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	return offers
}

func watching(t *testing.T, svc bridge.Service, e *model.Event) <-chan bridge.Item {
	t.Helper()
	items := make(chan bridge.Item, 64)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		_ = svc.Watch(ctx, e, func(it bridge.Item) {
			select {
			case items <- it:
			default:
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	return items
}

// picture is the protobuf form of a picture, and its SOME/IP form.
func picture(t *testing.T, size int) (message, payload []byte) {
	t.Helper()
	data := bytes.Repeat([]byte("picture "), size/8)
	message, err := proto.Marshal(wrapperspb.Bytes(data))
	require.NoError(t, err)
	return message, append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// repeat notifies an event until what it is for has happened.
func repeat(t *testing.T, o *runtime.Offering, event uint16, payload []byte, done func() bool, what string) {
	t.Helper()
	eventually(t, func() bool {
		require.NoError(t, o.Notify(event, payload))
		return done()
	}, what)
}

// An imported interface whose options say so has large messages over UDP and protected
// ones, both ways.
func TestDeploymentOfImported(t *testing.T) {
	d := newDomain(t)
	there, here := d.host(t, 2), d.host(t, 1)
	o := cameraECU(t, there, 0)
	iface, interfaces := camera(t), bridge.NewInterfaces()
	require.NoError(t, interfaces.Add(iface, nil))
	svc := receive(t, importing(t, here, interfaces)).Service

	for _, size := range []int{8, 1400, 50_000} {
		message, _ := picture(t, size)
		got, err := svc.Invoke(t.Context(), iface.Methods[0], message)
		require.NoError(t, err)
		require.Equal(t, message, got)
	}
	require.Equal(t, runtime.E2EStats{OK: 3}, there.Stats().E2E, "requests")
	require.Equal(t, runtime.E2EStats{OK: 3}, here.Stats().E2E, "answers")
	require.NotZero(t, there.TPStats().Completed)

	message, payload := picture(t, 20_000)
	pictures := watching(t, svc, iface.Events[0])
	repeat(t, o, 0x8001, payload, func() bool { return len(pictures) > 0 }, "a picture")
	it := receive(t, pictures)
	require.Equal(t, message, it.Payload)
	require.Equal(t, carismav1.E2EStatus_E2E_OK, it.E2E)
}

// What fails its check is lost, as the options say: a call with DATA_LOSS, an event
// without a word, or with the verdict where that is wanted (case 112). All are counted.
func TestFailedProtection(t *testing.T) {
	d := newDomain(t)
	there, here := d.host(t, 2), d.host(t, 1)
	o := cameraECU(t, there, 1)
	iface, interfaces := camera(t), bridge.NewInterfaces()
	require.NoError(t, interfaces.Add(iface, nil))
	svc := receive(t, importing(t, here, interfaces)).Service

	message, payload := picture(t, 3000)
	_, err := svc.Invoke(t.Context(), iface.Methods[0], message)
	var s *status.Error
	require.ErrorAs(t, err, &s)
	require.Equal(t, codes.DataLoss, s.Code)
	require.Equal(t, runtime.E2EStats{Error: 1, Dropped: 1}, here.Stats().E2E)

	pictures, lights := watching(t, svc, iface.Events[0]), watching(t, svc, iface.Events[1])
	repeat(t, o, 0x8001, payload, func() bool { return here.Stats().E2E.Dropped > 2 }, "pictures that are dropped")
	repeat(t, o, 0x8002, []byte{0, 0, 0, 7}, func() bool { return len(lights) > 0 }, "a light that is wrong")
	require.Equal(t, carismav1.E2EStatus_E2E_ERROR, receive(t, lights).E2E)
	require.Empty(t, pictures)
}

// mirror is a camera of the mesh.
type mirror struct {
	iface *model.Interface
	sinks chan bridge.Sink
}

func (m mirror) Interface() *model.Interface { return m.iface }

func (m mirror) Invoke(_ context.Context, _ *model.Method, in []byte) ([]byte, error) { return in, nil }

func (m mirror) Watch(ctx context.Context, e *model.Event, sink bridge.Sink) error {
	if e.Name == "Picture" {
		m.sinks <- sink
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// The same for what is exposed: a client with the same deployment is served, one
// without protection is not.
func TestDeploymentOfExposed(t *testing.T) {
	d := newDomain(t)
	here, there, bare := d.host(t, 1), d.host(t, 2), d.host(t, 3)
	svc := mirror{camera(t), make(chan bridge.Sink, 8)}
	adapter := someipadapter.New(someipadapter.Config{Network: here, Interfaces: bridge.NewInterfaces()})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		_ = adapter.Expose(ctx, bridge.Instance{Interface: svc.iface, Name: "front", Origin: bridge.Origin{Protocol: bridge.GRPC}}, svc)
	})
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})

	client := func(n *runtime.Network) *runtime.Client {
		c, err := n.Client(cameraKey)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		eventually(t, func() bool { return c.Availability().Up }, "the camera")
		return c
	}
	require.NoError(t, there.Deploy(cameraDeployment(0)))
	c := client(there)
	message, payload := picture(t, 30_000)
	r, err := c.Call(t.Context(), 1, false, payload)
	require.NoError(t, err)
	require.Equal(t, payload, r.Payload)
	require.Equal(t, e2e.OK, r.E2E.Status)

	plain := client(bare)
	_, small := picture(t, 8)
	eventually(t, func() bool {
		short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		_, err := plain.Call(short, 1, false, small)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return here.Stats().E2E.Dropped > 0
	}, "a request that is not served")

	notes := make(chan []byte, 64)
	sub, err := c.Subscribe(t.Context(), runtime.SubscribeConfig{Eventgroup: 1, Unreliable: true, OnEvent: func(n runtime.Notification) {
		if n.E2E.Status == e2e.OK {
			notes <- bytes.Clone(n.Payload)
		}
	}})
	require.NoError(t, err)
	defer sub.Close()
	receive(t, svc.sinks)(bridge.Item{Payload: message})
	require.Equal(t, payload, receive(t, notes))
}

// An instance that was called while its interface was not known gets the deployment
// when it is.
func TestDeploymentLearntLater(t *testing.T) {
	d := newDomain(t)
	there, here := d.host(t, 2), d.host(t, 1)
	cameraECU(t, there, 0)
	interfaces := bridge.NewInterfaces()
	offers := importing(t, here, interfaces)
	unknown := receive(t, offers).Service
	require.Same(t, opaque.Interface, unknown.Interface())
	request := opaque.Request{Method: 2, Payload: []byte{1}}.Append(nil)
	_, err := unknown.Invoke(t.Context(), opaque.Send, request)
	require.NoError(t, err)

	iface := camera(t)
	require.NoError(t, interfaces.Add(iface, nil))
	require.Nil(t, receive(t, offers).Service)
	svc := receive(t, offers).Service
	message, _ := picture(t, 3000)
	got, err := svc.Invoke(t.Context(), iface.Methods[0], message)
	require.NoError(t, err)
	require.Equal(t, message, got)
}

// Options of every kind that the reader takes are taken by the stack too.
func TestDeploymentOfEveryOption(t *testing.T) {
	set, err := ifaceproto.Load("../../codegen/proto/testdata/good/messages")
	require.NoError(t, err)
	iface := set.Interface("messages.v1.Camera")
	d := newDomain(t)
	here, there := d.host(t, 1), d.host(t, 2)
	adapter := someipadapter.New(someipadapter.Config{Network: here, Interfaces: bridge.NewInterfaces()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- adapter.Expose(ctx, bridge.Instance{Interface: iface, Name: "front", Origin: bridge.Origin{Protocol: bridge.GRPC}},
			mirror{iface, make(chan bridge.Sink, 8)})
	}()
	c, err := there.Client(cameraKey)
	require.NoError(t, err)
	eventually(t, func() bool { return c.Availability().Up || len(done) > 0 }, "the camera")
	cancel()
	require.NoError(t, receive(t, done))
	require.NoError(t, c.Close())
}
