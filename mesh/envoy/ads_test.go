package envoy_test

import (
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"carisma.dev/gateway/mesh/unixsock"
)

// emptyADS answers the first question for each type with nothing: an Envoy with
// no services is LIVE at once (CAR-49).
type emptyADS struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
}

func (emptyADS) DeltaAggregatedResources(s grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	for {
		req, err := s.Recv()
		if err != nil {
			return err
		}
		if req.GetResponseNonce() != "" {
			continue
		}
		if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: req.GetTypeUrl(), Nonce: "1"}); err != nil {
			return err
		}
	}
}

func serveEmptyADS(t *testing.T, socket string) {
	t.Helper()
	l, err := unixsock.Listen(t.Context(), socket, 0o600)
	require.NoError(t, err)
	srv := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(srv, emptyADS{})
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	t.Cleanup(func() { srv.Stop(); wg.Wait() })
}
