package grpcadapter

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
)

// InstanceHeader is the metadata key with the exact instance name of a call.
const InstanceHeader = "carisma-instance"

// handle serves every call that is not of the gateway's own services.
func (s *Server) handle(_ any, stream grpc.ServerStream) error {
	ctx := stream.Context()
	full, _ := grpc.MethodFromServerStream(stream)
	iface, name, ok := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	if !ok {
		return status.New(codes.Unimplemented, "malformed method name %q", full)
	}
	t, err := s.current.Load().choose(iface, header(ctx, InstanceHeader), header(ctx, ":authority"))
	if err != nil {
		return s.judge(err)
	}
	if t.svc == nil {
		return t.unavailable()
	}
	switch r := t.rpcs[name]; {
	case r.method != nil:
		return call(stream, t.svc, r.method)
	case r.event != nil:
		return s.watch(stream, t.name, t.svc, r.event)
	default:
		return status.New(codes.Unimplemented, "%s has no method %s", iface, name)
	}
}

// judge returns the error of a call for which nothing was chosen. A gateway that was
// started a moment ago cannot know that there is no such thing.
func (s *Server) judge(err error) error {
	if s.early.Load() {
		return status.Unavailable("this gateway has just started and does not know the mesh yet", time.Time{})
	}
	return err
}

func header(ctx context.Context, key string) string {
	if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// receive takes the one request of a call.
func receive(stream grpc.ServerStream, in *incoming) error {
	err := stream.RecvMsg(in)
	if errors.Is(err, io.EOF) {
		return errNoRequest
	}
	return err
}

// call serves a unary rpc. The caller's deadline, less the time for an answer, is
// that of the context.
func call(stream grpc.ServerStream, svc bridge.Service, m *model.Method) error {
	var in incoming
	if err := receive(stream, &in); err != nil {
		return err
	}
	ctx, cancel := answerable(stream.Context())
	defer cancel()
	out, err := svc.Invoke(ctx, m, in.bytes())
	in.free()
	if err != nil {
		return err
	}
	return stream.SendMsg(message(out))
}

// opening returns what runs the watch behind a stream. The header of the response
// tells the caller that the stream is open, though the first item may be long in
// coming: at once, or when a service that takes requests has taken this one.
func (s *Server) opening(stream grpc.ServerStream, svc bridge.Service, e *model.Event, in *incoming) (func(context.Context, bridge.Sink) error, error) {
	if x, ok := svc.(bridge.Subscribable); ok {
		return func(ctx context.Context, sink bridge.Sink) error {
			defer in.free()
			return x.Subscribe(ctx, e, in.bytes(), func() { s.sendHeader(stream) }, sink)
		}, nil
	}
	in.free()
	return func(ctx context.Context, sink bridge.Sink) error { return svc.Watch(ctx, e, sink) }, stream.SendHeader(nil)
}

func (s *Server) sendHeader(stream grpc.ServerStream) {
	if err := stream.SendHeader(nil); err != nil {
		s.log.Debug("stream not opened", "error", err) // its caller left, which ends it
	}
}

// watch serves a stream of an event or field. A caller that reads slowly loses
// items, which the next one tells: of a field it gets the latest value, of an
// event the newest ones. A stream may stay for long: it holds nothing of the directory
// that it was found in.
func (s *Server) watch(stream grpc.ServerStream, name string, svc bridge.Service, e *model.Event) error {
	var in incoming
	if err := receive(stream, &in); err != nil {
		return err
	}
	run, err := s.opening(stream, svc, e, &in)
	if err != nil {
		return err
	}
	delivery := bridge.DropOldest
	if e.Field != nil {
		delivery = bridge.KeepLatest
	}
	queue := bridge.NewQueue(delivery, bridge.EventQueueSize)
	s.watching.open.Add(1)
	defer s.watching.open.Add(-1)
	work, done := answerable(stream.Context())
	defer done()
	ctx, cancel := context.WithCancel(work)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		queue.Close(run(ctx, func(it bridge.Item) {
			if n := queue.Push(it); n > 0 {
				s.watching.lost.Add(n)
			}
		}))
	}()
	defer func() {
		cancel()
		<-watched
		if n := queue.Dropped(); n > 0 {
			s.log.Info("slow watcher lost items", "name", name, "event", e.Name, "lost", n)
		}
	}()
	for {
		it, err := queue.Pop(ctx)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(itemMessage(e, it)); err != nil {
			return err
		}
	}
}

// A payload up to maxJoined is copied beside its meta, which costs less than a
// message in two pieces; the meta takes about metaSize.
const (
	maxJoined = 1024
	metaSize  = 64
)

// itemMessage is the message of a stream. Other watchers have the same payload.
func itemMessage(e *model.Event, it bridge.Item) *outgoing {
	if len(it.Payload) > maxJoined {
		return message(it.Payload, appendMeta(nil, e, it))
	}
	b := append(make([]byte, 0, len(it.Payload)+metaSize), it.Payload...)
	return message(appendMeta(b, e, it))
}
