package xds

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
)

// socketMode opens the egress socket to every local user, as its TCP port is.
const socketMode = 0o666

// newListeners are the two mesh listeners of a proxy (CAR-22). They depend on the
// node's own addresses alone, so they never change: a change drains a listener
// and ends its streams.
func newListeners(p *store.Proxy) ([]*Resource, error) {
	ingress, err := newListener(ingressName, registry.Address{Addr: p.Ingress}, "",
		codes.Unavailable, "%REQ(:AUTHORITY)% is not on this node")
	if err != nil {
		return nil, err
	}
	egress, err := newListener(egressName, registry.Address{Addr: p.Egress}, p.EgressSocket,
		codes.NotFound, "no service %REQ(:AUTHORITY)% in the mesh")
	if err != nil {
		return nil, err
	}
	return []*Resource{ingress, egress}, nil
}

// newListener makes a listener whose calls without a cluster end with a status.
func newListener(name string, at registry.Address, socket string, unknown codes.Code, text string) (*Resource, error) {
	manager, err := connectionManager(name, unknown, text)
	if err != nil {
		return nil, err
	}
	l := &listenerv3.Listener{
		Name:    name,
		Address: address(at),
		// A second proxy on the same address is an error and no silent share (CAR-3).
		EnableReusePort: wrapperspb.Bool(false),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
		}}}},
	}
	if socket != "" {
		l.AdditionalAddresses = []*listenerv3.AdditionalAddress{{
			Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: socket, Mode: socketMode}}},
		}}
	}
	return NewResource(resourcev3.ListenerType, l)
}

func connectionManager(name string, unknown codes.Code, text string) (*anypb.Any, error) {
	router, err := pack(&routerv3.Router{SuppressEnvoyHeaders: true})
	if err != nil {
		return nil, err
	}
	return pack(&hcmv3.HttpConnectionManager{
		StatPrefix: name,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: name, ConfigSource: byADS(),
		}},
		HttpFilters: []*hcmv3.HttpFilter{{
			Name:       "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router},
		}},
		Http2ProtocolOptions: http2ProtocolOptions(nil),
		// A watch may be silent for hours: nothing ends it but its ends.
		StreamIdleTimeout:          durationpb.New(0),
		StripPortMode:              &hcmv3.HttpConnectionManager_StripAnyHostPort{StripAnyHostPort: true},
		GenerateRequestId:          wrapperspb.Bool(false),
		SkipXffAppend:              true,
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		LocalReplyConfig:           noCluster(unknown, text),
	})
}

// noCluster gives the answer for a service that the proxy has no cluster of.
func noCluster(code codes.Code, text string) *hcmv3.LocalReplyConfig {
	return &hcmv3.LocalReplyConfig{Mappers: []*hcmv3.ResponseMapper{{
		Filter: &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
			ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{Flags: []string{"NC"}},
		}},
		HeadersToAdd: []*corev3.HeaderValueOption{setHeader("grpc-status", itoa(code))},
		BodyFormatOverride: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline(text)},
		},
	}}}
}

func inline(s string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
}
