package xds

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"carisma.dev/gateway/mesh/api"
)

// sotwClient is a client of the older form.
type sotwClient struct {
	t      testing.TB
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	got    chan *discoveryv3.DiscoveryResponse
	last   *discoveryv3.DiscoveryResponse
}

func (r *rig) connectSotw() *sotwClient {
	r.t.Helper()
	ctx, cancel := context.WithCancel(api.NewOutgoing(context.Background(), theNode))
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(r.conn).StreamAggregatedResources(ctx)
	require.NoError(r.t, err)
	c := &sotwClient{t: r.t, stream: stream, got: make(chan *discoveryv3.DiscoveryResponse, 16)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			resp, err := stream.Recv()
			if err != nil {
				return
			}
			c.got <- resp
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return c
}

func (c *sotwClient) ask(typeURL string, refusal string, names ...string) {
	c.t.Helper()
	req := &discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: nodeID}, TypeUrl: typeURL, ResourceNames: names}
	if c.last != nil {
		req.ResponseNonce, req.VersionInfo = c.last.GetNonce(), c.last.GetVersionInfo()
	}
	if refusal != "" {
		req.ErrorDetail = &statuspb.Status{Message: refusal}
	}
	require.NoError(c.t, c.stream.Send(req))
}

// next returns how many resources came, -1 if nothing did.
func (c *sotwClient) next() int {
	synctest.Wait()
	select {
	case resp := <-c.got:
		c.last = resp
		return len(resp.GetResources())
	default:
		return -1
	}
}

func TestStateOfTheWorld(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "left", 1), endpoints(t, "right", 1), endpoints(t, "other", 1))
		c := r.connectSotw()
		c.ask(eds, "", "left", "right")
		require.Equal(t, 2, c.next())
		c.ask(eds, "", "left", "right")
		require.Equal(t, -1, c.next())
		require.Equal(t, uint64(1), r.cache.Counts().Acks)

		r.apply(endpoints(t, "other", 2))
		require.Equal(t, -1, c.next())
		r.apply(endpoints(t, "left", 2))
		require.Equal(t, 2, c.next())
		c.ask(eds, strings.Repeat("ä", maxReason), "left", "right")
		require.Equal(t, -1, c.next(), "what was refused is not repeated")
		nack := r.cache.Proxies()[0].Types[1].Nacks[everything]
		require.Len(t, nack.Reason, maxReason)

		r.apply(endpoints(t, "left", 3))
		require.Equal(t, 2, c.next())
		c.ask(eds, "", "left", "right", "other")
		require.Equal(t, 3, c.next())
		require.Empty(t, r.cache.Proxies()[0].Types[1].Nacks)
	})
}
