package xds

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Limits of a proxy. The defaults of Envoy are for the Internet: 1 024 requests a
// cluster and 1 024 streams a connection, then calls fail or wait.
const (
	maxRequests    = 1 << 20
	maxConnections = 1 << 16
	maxStreams     = 1 << 16

	// A stream that its reader leaves alone holds at most streamWindow in each
	// proxy, and only 256 of them stall a connection that they share.
	streamWindow     = 256 << 10
	connectionWindow = 64 << 20
)

// Times of the way to another node. A frozen or unplugged peer is noticed when a
// ping, sent after pingInterval of silence, stays unanswered for pingTimeout.
const (
	connectTimeout = 300 * time.Millisecond
	pingInterval   = 300 * time.Millisecond
	pingTimeout    = 300 * time.Millisecond
)

const http2Options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// serviceClusters are the clusters of one mesh service: the same on every node and
// for ever, since a cluster that changes has to warm up again.
type serviceClusters struct {
	egress [3]*Resource // NAME, NAME/local, NAME/remote
	in     *Resource    // only where the service has an instance
}

func newServiceClusters(name string) (*serviceClusters, error) {
	var s serviceClusters
	for i, build := range []func(string) (*clusterv3.Cluster, error){aggregate, local, remote, in} {
		c, err := build(name)
		if err != nil {
			return nil, err
		}
		r, err := NewResource(resourcev3.ClusterType, c)
		if err != nil {
			return nil, err
		}
		if i < len(s.egress) {
			s.egress[i] = r
		} else {
			s.in = r
		}
	}
	return &s, nil
}

// aggregate is NAME, what an authority selects: the local instances, else the
// remote ones (CAR-24), else the gateway that says why there is none.
func aggregate(name string) (*clusterv3.Cluster, error) {
	config, err := pack(&aggregatev3.ClusterConfig{
		Clusters: []string{localCluster(name), remoteCluster(name), gatewayCluster},
	})
	if err != nil {
		return nil, err
	}
	return &clusterv3.Cluster{
		Name:            name,
		LbPolicy:        clusterv3.Cluster_CLUSTER_PROVIDED,
		ConnectTimeout:  durationpb.New(connectTimeout),
		CircuitBreakers: breakers(),
		ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
			Name: "envoy.clusters.aggregate", TypedConfig: config,
		}},
	}, nil
}

// local is NAME/local. It sends no pings: stock gRPC servers end connections that
// do.
func local(name string) (*clusterv3.Cluster, error) { return edsCluster(localCluster(name), nil) }

// in is NAME/in, the same at the ingress.
func in(name string) (*clusterv3.Cluster, error) { return edsCluster(ingressCluster(name), nil) }

// remote is NAME/remote. Unhealthy hosts get no traffic even if all are (CAR-25),
// and one whose connections fail is left alone for a moment.
func remote(name string) (*clusterv3.Cluster, error) {
	c, err := edsCluster(remoteCluster(name), &corev3.KeepaliveSettings{
		Interval: durationpb.New(pingInterval), Timeout: durationpb.New(pingTimeout),
	})
	if err != nil {
		return nil, err
	}
	c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: 0}
	c.OutlierDetection = &clusterv3.OutlierDetection{
		SplitExternalLocalOriginErrors: true,
		ConsecutiveLocalOriginFailure:  wrapperspb.UInt32(5),
		Interval:                       durationpb.New(500 * time.Millisecond),
		BaseEjectionTime:               durationpb.New(250 * time.Millisecond),
		MaxEjectionTime:                durationpb.New(500 * time.Millisecond),
		// Of one or two hosts Envoy would never eject any.
		MaxEjectionPercent: wrapperspb.UInt32(100),
		// What the service itself answers is its own business.
		EnforcingConsecutive_5Xx:               wrapperspb.UInt32(0),
		EnforcingConsecutiveGatewayFailure:     wrapperspb.UInt32(0),
		EnforcingSuccessRate:                   wrapperspb.UInt32(0),
		EnforcingLocalOriginSuccessRate:        wrapperspb.UInt32(0),
		EnforcingConsecutiveLocalOriginFailure: wrapperspb.UInt32(100),
	}
	return c, nil
}

func edsCluster(name string, pings *corev3.KeepaliveSettings) (*clusterv3.Cluster, error) {
	options, err := http2(pings)
	if err != nil {
		return nil, err
	}
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: byADS()},
		ConnectTimeout:       durationpb.New(connectTimeout),
		CircuitBreakers:      breakers(),
		// Endpoints count at once; Envoy would collect changes for a second.
		CommonLbConfig:                &clusterv3.Cluster_CommonLbConfig{UpdateMergeWindow: durationpb.New(0)},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{http2Options: options},
	}, nil
}

// newGatewayCluster is the Unix socket of the node's own gateway.
func newGatewayCluster(socket string) (*Resource, error) {
	options, err := http2(nil)
	if err != nil {
		return nil, err
	}
	return NewResource(resourcev3.ClusterType, &clusterv3.Cluster{
		Name:                 gatewayCluster,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(connectTimeout),
		CircuitBreakers:      breakers(),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: gatewayCluster,
			Endpoints:   []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{lbEndpoint(pipe(socket))}}},
		},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{http2Options: options},
	})
}

func http2(pings *corev3.KeepaliveSettings) (*anypb.Any, error) {
	return pack(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: http2ProtocolOptions(pings),
				},
			},
		},
	})
}

func http2ProtocolOptions(pings *corev3.KeepaliveSettings) *corev3.Http2ProtocolOptions {
	return &corev3.Http2ProtocolOptions{
		MaxConcurrentStreams:        wrapperspb.UInt32(maxStreams),
		InitialStreamWindowSize:     wrapperspb.UInt32(streamWindow),
		InitialConnectionWindowSize: wrapperspb.UInt32(connectionWindow),
		ConnectionKeepalive:         pings,
	}
}

// breakers raises the limits and bounds retries by a share of the calls: by
// default three at a time, so that the loss of a host drops most of its calls.
func breakers() *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     wrapperspb.UInt32(maxConnections),
		MaxPendingRequests: wrapperspb.UInt32(maxRequests),
		MaxRequests:        wrapperspb.UInt32(maxRequests),
		RetryBudget: &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
			BudgetPercent:       &typev3.Percent{Value: 100},
			MinRetryConcurrency: wrapperspb.UInt32(64),
		},
	}}}
}

// byADS says that a resource comes over the stream that its reference came over.
func byADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}
