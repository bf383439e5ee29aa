package envoy

import (
	"bytes"
	"encoding/json"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// adsCluster is the only cluster of the bootstrap. A mesh name has dots, so no
// authority of a caller selects it.
const adsCluster = "ads"

// The back-off of a lost ADS stream: by default Envoy waits up to 30 s, which
// after an outage of a minute is 10 to 17 s without news.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 500 * time.Millisecond
)

// maxDownstream bounds the connections of all listeners together; without a
// limit Envoy warns at each start.
const maxDownstream = 50_000

// Bootstrap is what an Envoy is started with: who it is and where it asks.
// Everything else comes by ADS (CAR-39), and there is no secret in it.
type Bootstrap struct {
	NodeID      string // the CARISMA id (CAR-11)
	NodeName    string // the node's name, Envoy's node cluster
	ADSSocket   string // where the gateway serves ADS
	AdminSocket string // where Envoy serves its administration
}

// JSON returns the bootstrap file. The same values give the same bytes.
func (b Bootstrap) JSON() ([]byte, error) {
	msg, err := b.build()
	if err != nil {
		return nil, err
	}
	if err := msg.ValidateAll(); err != nil {
		return nil, err
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(msg)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	// protojson varies its spaces from build to build.
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func (b Bootstrap) build() (*bootstrapv3.Bootstrap, error) {
	ads, err := adsEndpoint(b.ADSSocket)
	if err != nil {
		return nil, err
	}
	connections, err := anypb.New(&connectionsv3.DownstreamConnectionsConfig{
		MaxActiveDownstreamConnections: maxDownstream,
	})
	if err != nil {
		return nil, err
	}
	byADS := &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
	return &bootstrapv3.Bootstrap{
		Node: &corev3.Node{Id: b.NodeID, Cluster: b.NodeName},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{
			AdsConfig: &corev3.ApiConfigSource{
				ApiType:                   corev3.ApiConfigSource_DELTA_GRPC,
				TransportApiVersion:       corev3.ApiVersion_V3,
				SetNodeOnFirstMessageOnly: true,
				GrpcServices: []*corev3.GrpcService{{
					TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
						ClusterName: adsCluster,
						RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
							BaseInterval: durationpb.New(retryMin),
							MaxInterval:  durationpb.New(retryMax),
						}},
					}},
				}},
			},
			LdsConfig: byADS,
			CdsConfig: byADS,
		},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{ads}},
		Admin: &bootstrapv3.Admin{
			Address: &corev3.Address{Address: &corev3.Address_Pipe{
				Pipe: &corev3.Pipe{Path: b.AdminSocket, Mode: 0o600},
			}},
		},
		LayeredRuntime: runtimeLayers(),
		StatsConfig:    statsConfig(),
		// Counters of a cluster that nobody calls cost memory for nothing.
		DeferredStatOptions: &bootstrapv3.Bootstrap_DeferredStatOptions{EnableDeferredCreationStats: true},
		OverloadManager: &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
			Name:       "envoy.resource_monitors.global_downstream_max_connections",
			ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: connections},
		}}},
	}, nil
}

// adsEndpoint is the cluster of the gateway's ADS socket. It has no HTTP/2 pings:
// a gateway that is frozen leaves the last configuration, which is right.
func adsEndpoint(socket string) (*clusterv3.Cluster, error) {
	http2, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	return &clusterv3.Cluster{
		Name:                 adsCluster,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2,
		},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: adsCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
					Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: socket}}},
				}},
			}}}},
		},
	}, nil
}

// runtimeLayers has only the layer of the admin socket, for an operator's
// experiment. What a control plane needs to know, that a cluster which is sent
// again takes its endpoints from Envoy's cache, 1.40 does without a switch, and a
// switch that is gone is an error in its log.
func runtimeLayers() *bootstrapv3.LayeredRuntime {
	return &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name:           "admin",
		LayerSpecifier: &bootstrapv3.RuntimeLayer_AdminLayer_{AdminLayer: &bootstrapv3.RuntimeLayer_AdminLayer{}},
	}}}
}

// statsConfig keeps the counters that an operator asks for. With all of them an
// Envoy of 500 services takes 14 MiB more.
func statsConfig() *metricsv3.StatsConfig {
	var keep []*matcherv3.StringMatcher
	for _, prefix := range []string{"server.", "control_plane.", "cluster_manager.", "listener_manager.", "http."} {
		keep = append(keep, &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix},
		})
	}
	for _, suffix := range []string{
		".upstream_rq_total", ".upstream_rq_active", ".upstream_rq_pending_overflow", ".upstream_cx_connect_fail",
		".downstream_cx_active", ".membership_healthy", ".update_rejected",
	} {
		keep = append(keep, &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: suffix},
		})
	}
	return &metricsv3.StatsConfig{
		StatsMatcher: &metricsv3.StatsMatcher{StatsMatcher: &metricsv3.StatsMatcher_InclusionList{
			InclusionList: &matcherv3.ListStringMatcher{Patterns: keep},
		}},
	}
}
