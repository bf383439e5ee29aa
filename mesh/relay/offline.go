package relay

import (
	"context"
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// offlineAfter is how long an Envoy that holds nothing waits for the control
// plane until it gets what is kept: at the start of a node both come up together.
const offlineAfter = 300 * time.Millisecond

// attemptGap is the least time between two attempts to open a stream: a
// connection may be dead before the agent knows.
const attemptGap = 20 * time.Millisecond

// open opens the stream to central. While central is away it waits, so that Envoy
// has its news the moment central is back and need not come back for it; the
// stream is open meanwhile and Envoy keeps what it has. It returns nil without an
// error once an Envoy that holds nothing should be served from what is kept.
func (r *Relay) open(ctx context.Context, method string, req request) (grpc.ClientStream, error) {
	wait := ctx
	if method == deltaMethod && len(req.held) == 0 && r.kept.has(req.nodeID) {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, offlineAfter)
		defer cancel()
	}
	gap := time.NewTicker(attemptGap)
	defer gap.Stop()
	told := false
	for ; ; <-gap.C {
		up, err := r.cfg.Central.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method,
			grpc.ForceCodecV2(raw), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))
		if status.Code(err) != codes.Unavailable || r.cfg.Await == nil {
			return up, err
		}
		if len(req.held) > 0 && !told {
			told = true
			r.tellHeld(req.nodeID)
		}
		if waitErr := r.cfg.Await(wait); waitErr != nil {
			if ctx.Err() == nil {
				return nil, nil //nolint:nilnil // central is away, serve what is kept
			}
			return nil, err
		}
	}
}

// tellHeld says what an Envoy has that outlived its gateway and cannot tell the
// control plane: what it acknowledged.
func (r *Relay) tellHeld(nodeID string) {
	if !r.kept.has(nodeID) {
		return
	}
	for _, typeURL := range []string{listenerType, routeType, endpointType} {
		msg, err := proto.Marshal(r.kept.answer(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL}, ""))
		if err != nil {
			continue
		}
		if has, err := delta.response(msg); err == nil {
			r.state.answer(has, request{})
		}
	}
}

// serveKept answers Envoy from what is kept until central is back. Then the stream
// ends, and Envoy asks central by the next one, naming what it holds.
func (r *Relay) serveKept(down grpc.ServerStream, req request, first []byte) error {
	r.log.Warn("envoy gets what was kept, the control plane is away")
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	ended := make(chan error, 2)
	s := r.newSession(delta, req.nodeID)
	go func() { ended <- s.answerKept(down, first) }() // ends with the stream
	go func() {
		if err := r.cfg.Await(ctx); err != nil {
			ended <- err
			return
		}
		ended <- status.Error(codes.Unavailable, "the control plane is back")
	}()
	return <-ended
}

func (s *session) answerKept(down grpc.ServerStream, msg []byte) error {
	for n := 1; ; n++ {
		req := &discoveryv3.DeltaDiscoveryRequest{}
		if err := proto.Unmarshal(msg, req); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		if nonce := req.GetResponseNonce(); nonce != "" {
			s.answered(request{nonce: nonce, failed: req.GetErrorDetail() != nil, reason: req.GetErrorDetail().GetMessage()})
		}
		// An answer to us asks for nothing, unless it subscribes to more.
		if req.GetResponseNonce() == "" || len(req.GetResourceNamesSubscribe()) > 0 {
			if err := s.sendKept(down, s.kept.answer(req, "kept-"+strconv.Itoa(n))); err != nil {
				return err
			}
		}
		msg = nil
		if err := down.RecvMsg(&msg); err != nil {
			return err
		}
	}
}

func (s *session) sendKept(down grpc.ServerStream, resp *discoveryv3.DeltaDiscoveryResponse) error {
	msg, err := proto.Marshal(resp)
	if err != nil {
		return err
	}
	sent, err := s.form.response(msg)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.sent[sent.nonce] = sent
	s.mu.Unlock()
	return down.SendMsg(&msg)
}
