package xds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/router/cluster_specifiers/lua/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/mesh/api"
)

// ownServices are answered by the gateway for the whole mesh where a call names no
// service of it: reflection, health, and the gateway's own package.
var ownServices = []string{"/grpc.reflection.", "/grpc.health.v1.", "/carisma.v1."}

// scriptName is what routes call the script by.
const scriptName = "choose"

// newEgressRoutes is the route table of every egress: all that any number of
// clients need (CAR-29, 30), who ask no registry (CAR-46). It is the same on
// all nodes and has one route for each interface; instances and their places are
// not in it.
func newEgressRoutes(interfaces map[string]*registry.Interface) (*Resource, error) {
	names := slices.Sorted(maps.Keys(interfaces))
	var routes []*routev3.Route
	for _, name := range names {
		if !versioned(name) {
			routes = append(routes, byUnversionedAuthority(name))
		}
	}
	routes = append(routes,
		route(match("/", absent(api.InstanceHeader), authority("^"+meshName+"$")), byHeader(":authority")),
		route(match("/", present(api.InstanceHeader)), byScript()),
		route(match("/", authority("(?i)^"+meshName+"$")), byScript()),
	)
	for _, prefix := range ownServices {
		routes = append(routes, route(match(prefix), toCluster(gatewayCluster)))
	}
	for _, name := range names {
		routes = append(routes, byPath(interfaces[name]))
	}
	routes = append(routes, answer(match("/"), codes.Unimplemented, "no such interface in the mesh"))
	host := &routev3.VirtualHost{
		Name: egressName, Domains: []string{"*"}, Routes: routes, RetryPolicy: retries(),
		RequestHeadersToAdd: []*corev3.HeaderValueOption{setHeader(serviceHeader, ingressCluster("%UPSTREAM_CLUSTER%"))},
	}
	return newRoutes(egressName, egressScript(), host)
}

// newIngressRoutes is the route table of every ingress. It selects NAME/in clusters
// and nothing else, so nothing passes through a node (CAR-23).
func newIngressRoutes() (*Resource, error) {
	return newRoutes(ingressName, ingressScript, &routev3.VirtualHost{
		Name: ingressName, Domains: []string{"*"},
		Routes: []*routev3.Route{
			route(match("/", headerMatches(serviceHeader, `^[a-z0-9_.-]+/in$`)), byHeader(serviceHeader)),
			route(match("/"), byScript()),
		},
		RequestHeadersToRemove: []string{serviceHeader},
	})
}

func newRoutes(name, script string, host *routev3.VirtualHost) (*Resource, error) {
	choose, err := pack(&luav3.LuaConfig{SourceCode: inline(script), DefaultCluster: gatewayCluster})
	if err != nil {
		return nil, err
	}
	return NewResource(resourcev3.RouteType, &routev3.RouteConfiguration{
		Name:         name,
		VirtualHosts: []*routev3.VirtualHost{host},
		ClusterSpecifierPlugins: []*routev3.ClusterSpecifierPlugin{{
			Extension: &corev3.TypedExtensionConfig{Name: scriptName, TypedConfig: choose},
		}},
	})
}

// byPath routes a call that names only an interface: to its only or its default
// instance, whose exact name it adds. Where there is none, the list is the answer.
func byPath(i *registry.Interface) *routev3.Route {
	m := match("/" + i.Name + "/")
	if i.Default == "" {
		return answer(m, codes.FailedPrecondition, ambiguous(i))
	}
	action := toCluster(i.Default)
	action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: i.Default}
	r := route(m, action)
	if name := i.DefaultInstance; name != "" && isASCII(name) {
		r.RequestHeadersToAdd = []*corev3.HeaderValueOption{setHeader(api.InstanceHeader, escape(name))}
	}
	return r
}

// maxListed bounds the instances that an answer lists.
const maxListed = 16

func ambiguous(i *registry.Interface) string {
	listed, more := i.Services, ""
	if len(listed) > maxListed {
		more = fmt.Sprintf(" and %d more", len(listed)-maxListed)
		listed = listed[:maxListed]
	}
	return fmt.Sprintf("%s has several instances and no default; name one by authority or by %s: %s%s",
		i.Name, api.InstanceHeader, strings.Join(listed, ", "), more)
}

// byUnversionedAuthority routes to the services of an interface without a version,
// whose names the common route does not match.
func byUnversionedAuthority(iface string) *routev3.Route {
	suffix := strings.ReplaceAll(strings.ToLower(iface), ".", `\.`)
	return route(match("/", absent(api.InstanceHeader), authority(`^[a-z0-9_-]+\.`+suffix+"$")), byHeader(":authority"))
}

func route(m *routev3.RouteMatch, a *routev3.RouteAction) *routev3.Route {
	// By default a route cuts calls off after 15 s and silent streams after 5 min.
	a.Timeout, a.IdleTimeout = durationpb.New(0), durationpb.New(0)
	return &routev3.Route{Match: m, Action: &routev3.Route_Route{Route: a}}
}

// answer ends a call with a status. A plain HTTP error would become another one.
func answer(m *routev3.RouteMatch, code codes.Code, message string) *routev3.Route {
	return &routev3.Route{
		Match:  m,
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{
			setHeader("grpc-status", itoa(code)),
			setHeader("grpc-message", escape(encodeMessage(message))),
		},
	}
}

// retries repeats calls that no service has seen, so it may be done for every
// method.
func retries() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{
		RetryOn:    "connect-failure,refused-stream,reset-before-request",
		NumRetries: wrapperspb.UInt32(3),
		RetryBackOff: &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: durationpb.New(time.Millisecond), MaxInterval: durationpb.New(10 * time.Millisecond),
		},
		HostSelectionRetryMaxAttempts: 3,
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name: "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: &anypb.Any{
				TypeUrl: "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
			}},
		}},
	}
}

func toCluster(name string) *routev3.RouteAction {
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: name}}
}

func byHeader(name string) *routev3.RouteAction {
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: name}}
}

func byScript() *routev3.RouteAction {
	return &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterSpecifierPlugin{ClusterSpecifierPlugin: scriptName}}
}

func match(prefix string, headers ...*routev3.HeaderMatcher) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}, Headers: headers}
}

func present(header string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
}

func absent(header string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: false}}
}

func authority(regex string) *routev3.HeaderMatcher { return headerMatches(":authority", regex) }

func headerMatches(header, regex string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
			SafeRegex: &matcherv3.RegexMatcher{Regex: regex},
		}},
	}}
}

func setHeader(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// escape keeps Envoy from reading a value as a format.
func escape(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// encodeMessage encodes a grpc-message: everything but printable ASCII, and %.
func encodeMessage(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

func itoa(c codes.Code) string { return strconv.Itoa(int(c)) }
