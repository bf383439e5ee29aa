// Package bridge joins the protocols: an adapter imports service instances
// from its protocol and exposes on it those that other adapters imported.
//
// The hub format is protobuf wire bytes. A [Table] runs the adapters, decides
// by origin and loop rules what is exposed where, and tells observers what is
// there.
package bridge

import (
	"context"
	"time"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

// Service is one service instance, whatever protocol it is on. Its methods may
// be called concurrently; errors they return are *status.Error.
type Service interface {
	Interface() *model.Interface
	// Invoke calls a method, getter or setter of the interface with the
	// protobuf wire bytes of the request and returns those of the response. It
	// returns with DEADLINE_EXCEEDED when ctx does. A fire-and-forget method
	// returns once the request was sent. The implementation must not keep in;
	// the caller owns the response.
	Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error)
	// Watch sends the items of an event or notifier to sink, one at a time,
	// until ctx ends or the service goes; then it returns the reason, for a
	// service that went UNAVAILABLE with reason and since. A field's watcher
	// gets the current value first.
	Watch(ctx context.Context, e *model.Event, sink Sink) error
}

// Subscribable is a service with streams that take a request, beside those that
// Watch serves.
type Subscribable interface {
	Service
	// Subscribe is Watch for a stream that takes a request, given as protobuf wire
	// bytes. opened is called at most once, when the service has taken the request
	// and before it sends what follows from that; it must not block. The
	// implementation must not keep in.
	Subscribe(ctx context.Context, e *model.Event, in []byte, opened func(), sink Sink) error
}

// Sink takes the items of a watch. It must not block, must not call back into
// the service, and may keep the item.
type Sink func(Item)

// Item is one notification of an event or field.
type Item struct {
	// Payload is the arguments as protobuf wire bytes, without meta. It is
	// shared between watchers: nobody may change it.
	Payload  []byte
	Session  uint16    // SOME/IP session id, 0 if it has none
	Source   string    // where it came from: network/ip:port
	Received time.Time // when this gateway received it
	Gap      uint32    // items lost to this watcher since the item before
	Initial  bool      // the current value of a field, not a change
	// E2E is the verdict of the end-to-end protection where it came in, if it had one.
	E2E carismav1.E2EStatus
}

// Adapter speaks one protocol on one network.
type Adapter interface {
	// Import sends the instances that appear on the network and those that go,
	// until ctx ends or the network fails. It must not close offers.
	Import(ctx context.Context, offers chan<- Offer) error
	// Expose makes svc reachable on the network until ctx ends, then returns
	// nil. The cause of ctx says why the instance went (*status.Error). An
	// error means that it is not, or no longer, exposed; the table tries again
	// after a while unless the error is a [NotExposableError].
	Expose(ctx context.Context, inst Instance, svc Service) error
}

// Instance is a service instance.
type Instance struct {
	Interface *model.Interface
	Name      string // instance name
	Origin    Origin
	// Descriptors is the serialised google.protobuf.FileDescriptorSet of the
	// interface. Nobody may change it.
	Descriptors []byte
}

// MeshName returns the name of the instance in the mesh.
func (i Instance) MeshName() string { return i.Interface.MeshName(i.Name) }

// Offer tells that an instance appeared, changed or went.
type Offer struct {
	Instance
	Service Service // nil when the instance went
	// Reason says why the instance went.
	Reason string
	Since  time.Time
}
