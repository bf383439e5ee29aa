package relay_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/relay"
)

// outage is what the agent knows of central: a token for each time it is back.
type outage chan struct{}

func (o outage) await(ctx context.Context) error {
	select {
	case <-o:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o outage) config(c *relay.Config) { c.Await = o.await }

func (f *fixture) acknowledge(t *testing.T, s stream) {
	t.Helper()
	resp, err := s.Recv()
	require.NoError(t, err)
	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: listenerType, ResponseNonce: resp.GetNonce()}))
	f.await(t, func(st relay.State) bool { return !st.Types[listenerType].Acked.IsZero() })
}

// An Envoy that holds its resources waits on an open stream, and has its news the
// moment central is back.
func TestWaitsForCentral(t *testing.T) {
	back := make(outage)
	f := start(t, back.config)
	f.central.Stop()
	s, err := f.client.DeltaAggregatedResources(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "id-1"}, TypeUrl: listenerType, ResourceNamesSubscribe: []string{"ingress"},
		InitialResourceVersions: map[string]string{"ingress": "1"},
	}))
	l, err := net.Listen("tcp", f.address)
	require.NoError(t, err)
	f.serveCentral(t, l)
	for resp := (*discoveryv3.DeltaDiscoveryResponse)(nil); resp == nil; {
		select {
		case back <- struct{}{}: // the connection may need another attempt
		case <-f.states:
			resp, err = s.Recv()
			require.NoError(t, err)
			require.Equal(t, "ingress", resp.GetResources()[0].GetName())
		}
	}
}

// An Envoy that starts while central is away is served what the one before it
// acknowledged, also by a gateway that was restarted itself.
func TestServesWhatWasKept(t *testing.T) {
	store := func(path string) func(*relay.Config) { return func(c *relay.Config) { c.Store = path } }
	path := filepath.Join(t.TempDir(), "ads.kept")
	t.Run("connected", func(t *testing.T) {
		f := start(t, store(path))
		f.acknowledge(t, f.open(t.Context(), t, "id-1", "ingress", "egress"))
	})
	require.FileExists(t, path)

	back := make(outage)
	f := start(t, store(path), back.config)
	f.central.Stop()
	s := f.open(t.Context(), t, "id-1", "ingress", "other")
	resp, err := s.Recv()
	require.NoError(t, err)
	require.Len(t, resp.GetResources(), 1)
	require.Equal(t, "ingress", resp.GetResources()[0].GetName())
	require.Equal(t, []string{"other"}, resp.GetRemovedResources(), "nobody waits for what is not there")

	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: listenerType, ResponseNonce: resp.GetNonce()}))
	f.await(t, func(st relay.State) bool { return !st.Types[listenerType].Acked.IsZero() && !st.Connected })
	require.NoError(t, s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: listenerType, ResourceNamesSubscribe: []string{"*"}}))
	resp, err = s.Recv()
	require.NoError(t, err)
	require.Len(t, resp.GetResources(), 2)

	back <- struct{}{}
	_, err = s.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "back")
}
