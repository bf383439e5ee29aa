package grpcadapter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
)

// remote is a gRPC service of the mesh. Its streams end when the connection
// does, though the service may be up: [bridge.KeepWatching] opens them again.
type remote struct {
	iface    *model.Interface
	conn     *grpc.ClientConn
	prefix   string // of method names
	instance string
	options  []grpc.CallOption
}

var (
	_ bridge.Service      = (*remote)(nil)
	_ bridge.Subscribable = subscribable{}
)

// subscribable is a service of the mesh with streams that take a request.
type subscribable struct {
	*remote
}

func newRemote(conn *grpc.ClientConn, inst bridge.Instance) bridge.Service {
	r := &remote{
		iface:    inst.Interface,
		conn:     conn,
		prefix:   "/" + inst.Interface.FullName() + "/",
		instance: inst.Name,
		options:  []grpc.CallOption{grpc.CallAuthority(inst.MeshName())},
	}
	if inst.Interface == opaque.Interface {
		return subscribable{r}
	}
	return r
}

func (r *remote) Interface() *model.Interface { return r.iface }

func (r *remote) context(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, InstanceHeader, r.instance)
}

func (r *remote) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	var out incoming
	// The transport may hold the request for longer than the call.
	request := message(bytes.Clone(in))
	if err := r.conn.Invoke(r.context(ctx), r.prefix+m.RPC, request, &out, r.options...); err != nil {
		return nil, status.FromGRPC(err)
	}
	defer out.free()
	return bytes.Clone(out.bytes()), nil
}

func (r *remote) Watch(ctx context.Context, e *model.Event, sink bridge.Sink) error {
	return r.watch(ctx, e, nil, nil, sink)
}

// Subscribe implements [bridge.Subscribable].
func (s subscribable) Subscribe(ctx context.Context, e *model.Event, in []byte, opened func(), sink bridge.Sink) error {
	return s.watch(ctx, e, bytes.Clone(in), opened, sink)
}

func (r *remote) watch(ctx context.Context, e *model.Event, in []byte, opened func(), sink bridge.Sink) error {
	ctx, cancel := context.WithCancel(r.context(ctx))
	defer cancel()
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, r.prefix+e.RPC, r.options...)
	if err != nil {
		return status.FromGRPC(err)
	}
	if err := stream.SendMsg(message(in)); err != nil && !errors.Is(err, io.EOF) {
		return status.FromGRPC(err)
	}
	if err := stream.CloseSend(); err != nil {
		return status.FromGRPC(err)
	}
	if opened != nil {
		// Without a header the stream has ended, and RecvMsg says why.
		if header, err := stream.Header(); err == nil && header != nil {
			opened()
		}
	}
	for {
		var msg incoming
		if err := stream.RecvMsg(&msg); err != nil {
			return endOfStream(err)
		}
		it := splitMeta(bytes.Clone(msg.bytes()), e)
		msg.free()
		if it.Received.IsZero() {
			it.Received = time.Now()
		}
		sink(it)
	}
}

func endOfStream(err error) error {
	if errors.Is(err, io.EOF) {
		return status.New(codes.Unavailable, "the service ended the stream")
	}
	return status.FromGRPC(err)
}
