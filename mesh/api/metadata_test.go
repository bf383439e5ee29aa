package api_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"carisma.dev/gateway/mesh/api"
)

// CAR-12: what a node sends is what the control plane reads.
func TestIdentity(t *testing.T) {
	t.Parallel()
	out := api.NewOutgoing(context.Background(), api.Identity{ID: "old", Epoch: 1})
	out = metadata.AppendToOutgoingContext(out, "other", "kept")
	out = api.NewOutgoing(out, api.Identity{ID: "new", Epoch: 2})
	md, _ := metadata.FromOutgoingContext(out)
	require.Equal(t, []string{"kept"}, md.Get("other"))

	id, ok := api.FromIncoming(metadata.NewIncomingContext(context.Background(), md))
	require.True(t, ok)
	require.Equal(t, api.Identity{ID: "new", Epoch: 2}, id)
}

func TestIdentityRefused(t *testing.T) {
	t.Parallel()
	for name, md := range map[string]metadata.MD{
		"none":  {},
		"empty": {api.NodeIDHeader: {""}},
		"two":   {api.NodeIDHeader: {"a", "b"}},
	} {
		_, ok := api.FromIncoming(metadata.NewIncomingContext(context.Background(), md))
		require.False(t, ok, name)
	}
	for name, epochs := range map[string][]string{"none": nil, "word": {"x"}, "negative": {"-1"}, "two": {"1", "2"}} {
		md := metadata.MD{api.NodeIDHeader: {"a"}, api.NodeEpochHeader: epochs}
		id, ok := api.FromIncoming(metadata.NewIncomingContext(context.Background(), md))
		require.True(t, ok, name)
		require.Equal(t, api.Identity{ID: "a"}, id, name)
	}
}
