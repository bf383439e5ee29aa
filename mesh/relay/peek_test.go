package relay

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// The field numbers are Envoy's.
func TestPeek(t *testing.T) {
	t.Parallel()
	node := &corev3.Node{Id: "n1", Cluster: "rear"}
	bad := &status.Status{Code: 13, Message: "no"}
	for name, c := range map[string]struct {
		form      form
		req, resp proto.Message
		held      []string
	}{
		"delta": {
			delta,
			&discoveryv3.DeltaDiscoveryRequest{
				Node: node, TypeUrl: "t", ResponseNonce: "7", ErrorDetail: bad,
				ResourceNamesSubscribe: []string{"a"}, InitialResourceVersions: map[string]string{"a": "1"},
			},
			&discoveryv3.DeltaDiscoveryResponse{
				TypeUrl: "t", Nonce: "8", SystemVersionInfo: "x",
				Resources: []*discoveryv3.Resource{{Name: "a"}, {Name: "b"}}, RemovedResources: []string{"c"},
			},
			[]string{"a"},
		},
		"sotw": {
			sotw,
			&discoveryv3.DiscoveryRequest{
				Node: node, TypeUrl: "t", ResponseNonce: "7", ErrorDetail: bad,
				VersionInfo: "1", ResourceNames: []string{"a"},
			},
			&discoveryv3.DiscoveryResponse{
				TypeUrl: "t", Nonce: "8", VersionInfo: "x", Canary: true,
				Resources: []*anypb.Any{{}, {}},
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := proto.Marshal(c.req)
			require.NoError(t, err)
			req, err := c.form.request(raw)
			require.NoError(t, err)
			require.Equal(t, request{nodeID: "n1", typeURL: "t", nonce: "7", held: c.held, failed: true, reason: "no"}, req)
			for i := range raw {
				_, _ = c.form.request(raw[:i]) // must not crash
			}

			raw, err = proto.Marshal(c.resp)
			require.NoError(t, err)
			resp, err := c.form.response(raw)
			require.NoError(t, err)
			require.Equal(t, response{typeURL: "t", nonce: "8", resources: 2}, resp)
		})
	}
}

func FuzzPeek(f *testing.F) {
	raw, err := proto.Marshal(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "n1"}, TypeUrl: "t", ResponseNonce: "7"})
	require.NoError(f, err)
	f.Add(raw)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, msg []byte) {
		var whole discoveryv3.DeltaDiscoveryRequest
		req, err := delta.request(msg)
		if proto.Unmarshal(msg, &whole) == nil && whole.GetNode() != nil {
			require.NoError(t, err)
			require.Equal(t, whole.GetResponseNonce(), req.nonce)
		}
	})
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	full, err := anypb.New(&endpointv3.ClusterLoadAssignment{
		ClusterName: "a/local", Endpoints: []*endpointv3.LocalityLbEndpoints{{}},
		Policy: &endpointv3.ClusterLoadAssignment_Policy{WeightedPriorityHealth: true},
	})
	require.NoError(t, err)
	empty, err := anypb.New(&endpointv3.ClusterLoadAssignment{ClusterName: "b/remote"})
	require.NoError(t, err)
	want := map[string]bool{"a/local": true, "b/remote": false}

	msg, err := proto.Marshal(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: endpointType, Resources: []*discoveryv3.Resource{
		{Name: "a/local", Version: "1", Resource: full}, {Name: "b/remote", Version: "2", Resource: empty},
	}})
	require.NoError(t, err)
	resp, err := delta.response(msg)
	require.NoError(t, err)
	require.Equal(t, want, resp.clusters)

	msg, err = proto.Marshal(&discoveryv3.DiscoveryResponse{TypeUrl: endpointType, Resources: []*anypb.Any{full, empty}})
	require.NoError(t, err)
	resp, err = sotw.response(msg)
	require.NoError(t, err)
	require.Equal(t, want, resp.clusters)
}
