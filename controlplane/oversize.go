package controlplane

import (
	"context"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// oversize counts the messages that were longer than maxMessage. grpc-go answers
// them by RESOURCE_EXHAUSTED before a handler or an interceptor sees anything.
type oversize struct{ refused atomic.Uint64 }

// HandleRPC implements stats.Handler.
func (o *oversize) HandleRPC(_ context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if !ok || end.Error == nil {
		return
	}
	if st := status.Convert(end.Error); st.Code() == codes.ResourceExhausted && strings.Contains(st.Message(), "larger than max") {
		o.refused.Add(1)
	}
}

// TagRPC implements stats.Handler.
func (*oversize) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (*oversize) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*oversize) HandleConn(context.Context, stats.ConnStats) {}
