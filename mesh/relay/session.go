package relay

import (
	"log/slog"
	"sync"

	"google.golang.org/grpc"
)

// session is one relayed stream. It reads along: which response was sent under
// which nonce, and whether Envoy took it.
type session struct {
	form   form
	nodeID string
	state  *tracker
	kept   *kept
	log    *slog.Logger

	mu   sync.Mutex
	sent map[string]response // by nonce, until Envoy has answered
}

func (r *Relay) newSession(f form, nodeID string) *session {
	return &session{form: f, nodeID: nodeID, state: &r.state, kept: r.kept, log: r.log, sent: map[string]response{}}
}

// requests passes what Envoy asks until its stream ends.
func (s *session) requests(down grpc.ServerStream, up grpc.ClientStream) error {
	for {
		var msg []byte
		if err := down.RecvMsg(&msg); err != nil {
			return err
		}
		if err := s.toCentral(up, msg); err != nil {
			return err
		}
	}
}

// responses passes what central answers until its stream ends.
func (s *session) responses(up grpc.ClientStream, down grpc.ServerStream) error {
	for {
		var msg []byte
		if err := up.RecvMsg(&msg); err != nil {
			return err
		}
		resp, err := s.form.response(msg)
		if err != nil {
			return err
		}
		if s.form == delta {
			resp.raw = msg
		}
		s.mu.Lock()
		s.sent[resp.nonce] = resp
		s.mu.Unlock()
		if err := down.SendMsg(&msg); err != nil {
			return err
		}
	}
}

// toCentral passes a request, then reads what it says: the control plane waits for
// an ACK, and what the gateway makes of it takes a moment.
func (s *session) toCentral(up grpc.ClientStream, msg []byte) error {
	req, err := s.form.request(msg)
	if err != nil {
		return err
	}
	err = up.SendMsg(&msg)
	switch {
	case req.nonce != "":
		s.answered(req)
	case len(req.held) > 0:
		// An Envoy that outlived its gateway names what it acknowledged before. What
		// endpoints it has is not in the names: most have one.
		held := response{typeURL: req.typeURL, resources: len(req.held)}
		if req.typeURL == endpointType {
			held.clusters = map[string]bool{}
			for _, name := range req.held {
				held.clusters[name] = true
			}
		}
		s.state.answer(held, req)
	}
	return err
}

// answered notes an ACK or NACK. A subscription in SotW form repeats the last
// nonce; it is no longer in sent.
func (s *session) answered(req request) {
	s.mu.Lock()
	resp, ok := s.sent[req.nonce]
	delete(s.sent, req.nonce)
	s.mu.Unlock()
	if !ok {
		return
	}
	switch {
	case req.failed:
		s.log.Warn("envoy refused resources", "type", resp.typeURL, "reason", req.reason)
	case resp.raw != nil:
		if err := s.kept.acknowledged(s.nodeID, resp.raw); err != nil {
			s.log.Error("what envoy acknowledged is not kept", "error", err)
		}
	}
	s.state.answer(resp, req)
}
