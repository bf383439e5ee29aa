package xds

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachetypes "github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api"
)

// One endpoint of one service changes; every node holds the endpoints of all
// services by delta EDS. The cost is that of the change, its responses and their
// acknowledgements, without the network: here and, for comparison, with
// go-control-plane's LinearCache.
var benchSizes = []struct{ services, nodes int }{{2, 2}, {2, 16}, {500, 2}, {500, 16}, {5000, 16}}

func BenchmarkChange(b *testing.B) {
	for _, size := range benchSizes {
		name := fmt.Sprintf("services=%d/nodes=%d", size.services, size.nodes)
		b.Run(name+"/carisma", func(b *testing.B) { benchCache(b, size.services, size.nodes) })
		b.Run(name+"/linear", func(b *testing.B) { benchLinear(b, size.services, size.nodes) })
	}
}

func serviceName(i int) string { return fmt.Sprintf("i%d.cabin.climate.v1.climate/remote", i) }

func benchCache(b *testing.B, services, nodes int) {
	b.Helper()
	cache := NewCache(slog.New(slog.DiscardHandler))
	names := make([]string, services)
	all := make([]*Resource, services)
	for i := range services {
		names[i] = serviceName(i)
		all[i] = endpoints(b, names[i], 1)
	}
	sub := streamv3.NewDeltaSubscription(names, nil, nil, true)
	streams := make([]*stream, nodes)
	outs := make([]chan cachev3.DeltaResponse, nodes)
	ids := make([]string, nodes)
	for i := range nodes {
		ids[i] = fmt.Sprint("node", i)
		cache.SetNode(ids[i], ids[i], true)
		cache.Apply(1, []Update{{Node: ids[i], Set: all}})
		var err error
		streams[i], err = cache.attach(context.Background(), api.Identity{ID: ids[i]}, "", func(error) {})
		require.NoError(b, err)
		outs[i] = make(chan cachev3.DeltaResponse, 20)
		_, err = cache.CreateDeltaWatch(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: streams[i].key}, TypeUrl: eds, ResourceNamesSubscribe: names,
		}, &sub, outs[i])
		require.NoError(b, err)
	}
	// take is what the server and the proxy do with a response.
	take := func(i int) int {
		resp, err := (<-outs[i]).GetDeltaDiscoveryResponse()
		require.NoError(b, err)
		cache.sending(streams[i], eds, "n")
		_, err = cache.CreateDeltaWatch(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: streams[i].key}, TypeUrl: eds, ResponseNonce: "n",
		}, &sub, outs[i])
		require.NoError(b, err)
		return len(resp.GetResources())
	}
	cache.Settle()
	for i := range nodes {
		require.Equal(b, services, take(i))
	}
	b.ReportAllocs()
	port := uint16(2)
	for b.Loop() {
		r := endpoints(b, names[0], port)
		port++
		updates := make([]Update, nodes)
		for i := range nodes {
			updates[i] = Update{Node: ids[i], Set: []*Resource{r}}
		}
		cache.Apply(2, updates)
		for i := range nodes {
			if take(i) != 1 {
				b.Fatal("not one resource")
			}
		}
	}
}

func benchLinear(b *testing.B, services, nodes int) {
	b.Helper()
	cache := cachev3.NewLinearCache(eds)
	names := make([]string, services)
	resources := map[string]cachetypes.Resource{}
	assignment := func(name string, port uint16) cachetypes.Resource {
		m, err := endpoints(b, name, port).any.UnmarshalNew()
		require.NoError(b, err)
		return m
	}
	for i := range services {
		names[i] = serviceName(i)
		resources[names[i]] = assignment(names[i], 1)
	}
	cache.SetResources(resources)
	subs := make([]streamv3.Subscription, nodes)
	outs := make([]chan cachev3.DeltaResponse, nodes)
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds}
	watch := func(i int) {
		_, err := cache.CreateDeltaWatch(req, &subs[i], outs[i])
		require.NoError(b, err)
	}
	take := func(i int) int {
		r := <-outs[i]
		resp, err := r.GetDeltaDiscoveryResponse()
		require.NoError(b, err)
		subs[i].SetReturnedResources(r.GetReturnedResources())
		watch(i)
		return len(resp.GetResources())
	}
	for i := range nodes {
		subs[i] = streamv3.NewDeltaSubscription(names, nil, nil, true)
		outs[i] = make(chan cachev3.DeltaResponse, 20)
		watch(i)
		require.Equal(b, services, take(i))
	}
	b.ReportAllocs()
	port := uint16(2)
	for b.Loop() {
		require.NoError(b, cache.UpdateResource(names[0], assignment(names[0], port)))
		port++
		for i := range nodes {
			if take(i) != 1 {
				b.Fatal("not one resource")
			}
		}
	}
}
