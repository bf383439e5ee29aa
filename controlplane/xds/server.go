package xds

import (
	"context"
	"errors"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	sotwv3 "github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
)

// ClientKindKey is the key in an xDS node's metadata that names the kind of
// client; without it the client is the node's proxy. The identity of a stream is
// the id of the node and the kind.
const ClientKindKey = "carisma-client-kind"

// kindProxy is the only kind that is served: other clients need other forms of
// the resources.
const kindProxy = "proxy"

// Server serves ADS in both forms from a Cache.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	cache *Cache
	check func(api.Identity) error
	delta deltav3.Server
	sotw  sotwv3.Server
}

// NewServer returns a server whose streams end with ctx. check says whether the
// identity that a stream carries is one that may be served (CAR-13).
func NewServer(ctx context.Context, cache *Cache, check func(api.Identity) error) *Server {
	return &Server{
		cache: cache, check: check,
		delta: deltav3.NewServer(ctx, cache, nil),
		sotw:  sotwv3.NewServer(ctx, cache, nil),
	}
}

// DeltaAggregatedResources implements the incremental form of ADS.
func (s *Server) DeltaAggregatedResources(inner discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.serve(inner, func(v *visit) error {
		return s.delta.DeltaStreamHandler(&deltaStream{inner, v}, resourcev3.AnyType)
	})
}

// StreamAggregatedResources implements the state-of-the-world form of ADS.
func (s *Server) StreamAggregatedResources(inner discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.serve(inner, func(v *visit) error {
		return s.sotw.StreamHandler(&sotwStream{inner, v}, resourcev3.AnyType)
	})
}

// serve runs a stream until it ends or the cache ends it. go-control-plane's loop
// cannot be told to stop; it stops when the stream is over, which it is once this
// returns.
func (s *Server) serve(inner grpc.ServerStream, run func(*visit) error) error {
	id, ok := api.FromIncoming(inner.Context())
	if !ok {
		id = api.Identity{}
	}
	if err := s.check(id); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(inner.Context())
	defer cancel(nil)
	v := &visit{server: s, id: id, cancel: cancel}
	done := make(chan error, 1)
	go func() {
		defer v.leave()
		done <- run(v)
	}()
	select {
	case err := <-done:
		// A stream that this side ended for a reason says that reason.
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// visit is one stream from its first request on.
type visit struct {
	server *Server
	id     api.Identity
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	stream *stream // nil before the first request
	left   bool
}

// enter takes the node of a request, and replaces it by the key of the stream.
func (v *visit) enter(ctx context.Context, n *corev3.Node) (*corev3.Node, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.left {
		return nil, errStreamGone
	}
	if v.stream == nil {
		if err := v.admit(ctx, n); err != nil {
			v.cancel(err)
			return nil, err
		}
	}
	return &corev3.Node{Id: v.stream.key}, nil
}

// admit judges the first request, the only one that has to carry a node.
func (v *visit) admit(ctx context.Context, n *corev3.Node) error {
	if n.GetId() != v.id.ID {
		v.server.cache.refusedStream()
		return status.Errorf(codes.PermissionDenied, "node.id %q is not the id of the request", n.GetId()) // CAR-11
	}
	if kind := n.GetMetadata().GetFields()[ClientKindKey].GetStringValue(); kind != "" && kind != kindProxy {
		v.server.cache.refusedStream()
		return status.Errorf(codes.Unimplemented, "clients of kind %q are not served", kind)
	}
	address := ""
	if p, ok := peer.FromContext(ctx); ok {
		address = p.Addr.String()
	}
	st, err := v.server.cache.attach(ctx, v.id, address, v.cancel)
	v.stream = st
	return err
}

func (v *visit) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = true
	if v.stream != nil {
		v.server.cache.detach(v.stream)
	}
}

// sending notes what goes out. There is nothing to send before the first request.
func (v *visit) sending(typeURL, nonce string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.server.cache.sending(v.stream, typeURL, nonce)
}

func (c *Cache) refusedStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.RefusedStreams++
}

type deltaStream struct {
	discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	v *visit
}

func (d *deltaStream) Recv() (*discoveryv3.DeltaDiscoveryRequest, error) {
	req, err := d.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Recv()
	if err == nil {
		req.Node, err = d.v.enter(d.Context(), req.GetNode())
	}
	return req, err
}

func (d *deltaStream) Send(resp *discoveryv3.DeltaDiscoveryResponse) error {
	d.v.sending(resp.GetTypeUrl(), resp.GetNonce())
	return d.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Send(resp)
}

type sotwStream struct {
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	v *visit
}

func (d *sotwStream) Recv() (*discoveryv3.DiscoveryRequest, error) {
	req, err := d.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Recv()
	if err == nil {
		req.Node, err = d.v.enter(d.Context(), req.GetNode())
	}
	return req, err
}

func (d *sotwStream) Send(resp *discoveryv3.DiscoveryResponse) error {
	d.v.sending(resp.GetTypeUrl(), resp.GetNonce())
	return d.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Send(resp)
}
