package api

import (
	"context"
	"strconv"

	"google.golang.org/grpc/metadata"
)

// Identity is what a node proves a request with: the id of its registration and
// the epoch that fences earlier holders of the id (CAR-12).
type Identity struct {
	ID    string
	Epoch uint64
}

// NewOutgoing returns a context whose requests carry the identity, in place of
// one they may carry already.
func NewOutgoing(ctx context.Context, id Identity) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(NodeIDHeader, id.ID)
	md.Set(NodeEpochHeader, strconv.FormatUint(id.Epoch, 10))
	return metadata.NewOutgoingContext(ctx, md)
}

// FromIncoming returns the identity that a request carries. It is false if the
// request names no id; an epoch that is missing or not a number is 0, which no
// registration ever has.
func FromIncoming(ctx context.Context) (Identity, bool) {
	ids := metadata.ValueFromIncomingContext(ctx, NodeIDHeader)
	if len(ids) != 1 || ids[0] == "" {
		return Identity{}, false
	}
	id := Identity{ID: ids[0]}
	if epochs := metadata.ValueFromIncomingContext(ctx, NodeEpochHeader); len(epochs) == 1 {
		if n, err := strconv.ParseUint(epochs[0], 10, 64); err == nil {
			id.Epoch = n
		}
	}
	return id, true
}
