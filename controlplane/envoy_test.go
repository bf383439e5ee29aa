package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"carisma.dev/gateway/mesh/api"
)

// startEnvoy starts the proxy of a node. Its bootstrap has ADS only (CAR-39).
func (a *agent) startEnvoy() *envoyProcess {
	a.tb.Helper()
	path := os.Getenv("CARISMA_ENVOY")
	if path == "" {
		a.tb.Skip("CARISMA_ENVOY names no Envoy binary")
	}
	dir := a.tb.TempDir()
	host, port, err := net.SplitHostPort(cmp.Or(a.ads, a.plane.Addr().String()))
	require.NoError(a.tb, err)
	h2 := map[string]any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": map[string]any{
		"@type":                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
		"explicit_http_config": map[string]any{"http2_protocol_options": map[string]any{}},
	}}
	ads := map[string]any{"ads": map[string]any{}, "resource_api_version": "V3"}
	bootstrap := map[string]any{
		"node":  map[string]any{"id": a.id.ID, "cluster": a.req.GetName()},
		"admin": map[string]any{"address": map[string]any{"pipe": map[string]any{"path": filepath.Join(dir, "admin")}}},
		"dynamic_resources": map[string]any{
			"lds_config": ads, "cds_config": ads,
			"ads_config": map[string]any{
				"api_type": "DELTA_GRPC", "transport_api_version": "V3", "set_node_on_first_message_only": true,
				"grpc_services": []any{map[string]any{
					"envoy_grpc": map[string]any{
						"cluster_name": "xds",
						"retry_policy": map[string]any{"retry_back_off": map[string]any{"base_interval": "0.1s", "max_interval": "0.5s"}},
					},
					"initial_metadata": []any{
						map[string]any{"key": api.NodeIDHeader, "value": a.id.ID},
						map[string]any{"key": api.NodeEpochHeader, "value": fmt.Sprint(a.id.Epoch)},
					},
				}},
			},
		},
		"static_resources": map[string]any{"clusters": []any{map[string]any{
			"name": "xds", "type": "STATIC", "connect_timeout": "1s", "typed_extension_protocol_options": h2,
			"load_assignment": map[string]any{"cluster_name": "xds", "endpoints": []any{map[string]any{"lb_endpoints": []any{
				map[string]any{"endpoint": map[string]any{"address": map[string]any{
					"socket_address": map[string]any{"address": host, "port_value": json.Number(port)},
				}}},
			}}}},
		}}},
	}
	raw, err := json.Marshal(bootstrap)
	require.NoError(a.tb, err)
	file := filepath.Join(dir, "envoy.json")
	require.NoError(a.tb, os.WriteFile(file, raw, 0o600))
	e := &envoyProcess{cmd: exec.Command(path, "-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warn")}
	e.cmd.Stderr = &e.log
	require.NoError(a.tb, e.cmd.Start())
	a.tb.Cleanup(func() {
		e.kill()
		if a.tb.Failed() {
			a.tb.Logf("envoy of %s:\n%s", a.req.GetName(), e.log.Bytes())
		}
	})
	return e
}

type envoyProcess struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	once sync.Once
}

func (e *envoyProcess) kill() {
	e.once.Do(func() {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	})
}

// raw passes messages as bytes.
type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) ([]byte, error) {
	if b, ok := v.(*[]byte); ok {
		return *b, nil
	}
	return nil, fmt.Errorf("%T", v)
}

func (raw) Unmarshal(b []byte, v any) error {
	if to, ok := v.(*[]byte); ok {
		*to = bytes.Clone(b)
		return nil
	}
	return fmt.Errorf("%T", v)
}

// serve runs a gRPC server that answers every method with its own name and what it
// was asked by. With an error it answers that.
func serve(tb testing.TB, listener net.Listener, name string, fail error) string {
	tb.Helper()
	s := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var in []byte
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		if fail != nil {
			return fail
		}
		md, _ := metadata.FromIncomingContext(stream.Context())
		text := name + " " + strings.Join(md.Get(":authority"), "") + " " + strings.Join(md.Get(api.InstanceHeader), "")
		out := protoString(text)
		return stream.SendMsg(&out)
	}))
	go func() { _ = s.Serve(listener) }()
	tb.Cleanup(s.Stop)
	if listener.Addr().Network() == "unix" {
		return "unix:" + listener.Addr().String()
	}
	return listener.Addr().String()
}

func protoString(s string) []byte { return append([]byte{0x0A, byte(len(s))}, s...) }

func serveTCP(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serve(t, l, name, nil)
}

// serveGateway plays the gateway of a node: it answers for itself and says why a
// service is not there.
func (a *agent) serveGateway() {
	a.tb.Helper()
	l, err := net.Listen("unix", a.req.GetProxy().GetGatewaySocket())
	require.NoError(a.tb, err)
	serve(a.tb, l, "gateway-of-"+a.req.GetName(), nil)
}

type caller struct {
	t    *testing.T
	conn *grpc.ClientConn
}

func dial(t *testing.T, target, authority string) *caller {
	t.Helper()
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if authority != "" {
		opts = append(opts, grpc.WithAuthority(authority))
	}
	conn, err := grpc.NewClient("passthrough:///"+target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn}
}

// call returns what the service said, or the status of the call in words.
func (c *caller) call(method, instance string) string {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if instance != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, api.InstanceHeader, instance)
	}
	out := &wrapperspb.StringValue{}
	err := c.conn.Invoke(ctx, method, wrapperspb.String("x"), out, grpc.WaitForReady(true))
	if err != nil {
		return status.Code(err).String() + ": " + status.Convert(err).Message()
	}
	return out.GetValue()
}

const (
	climate = "cabin.climate.v1.Climate"
	trip    = "cabin.trip.v1.TripComputer"
)

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	require.Eventually(tb, ok, patience, 10*time.Millisecond, what)
}

// acked waits until a node's proxy has taken all that the registry says.
func (a *agent) acked() {
	a.tb.Helper()
	eventually(a.tb, "the proxy of "+a.req.GetName()+" takes what it is sent", func() bool {
		for _, p := range a.plane.cache.Proxies() {
			if p.Node != a.id.ID || p.Peer == "" {
				continue
			}
			for _, typ := range p.Types {
				if typ.Sent == "" && typ.Type == resourcev3.EndpointType {
					continue // without services a proxy asks for no endpoints
				}
				if typ.Acked == "" || typ.Acked != typ.Sent {
					return false
				}
			}
			return true
		}
		return false
	})
}

// CAR-22, 26, 30, 39, 45: what a caller reaches through its own egress, by each of the
// ways to name a service.
func TestEnvoyOneNode(t *testing.T) {
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	a.serveGateway()
	a.startEnvoy()
	a.sync(
		native(climate, "left", serveTCP(t, "left")),
		native(climate, "Right Seat", serveTCP(t, "right")),
		native(trip, "", serveTCP(t, "trip")),
		native("legacy.Thermo", "", serveTCP(t, "thermo")),
		native("legacy.Thermo", "two", serveTCP(t, "thermo2")),
	)
	a.acked()
	for name, c := range map[string]struct{ authority, method, instance, want string }{
		"authority":                 {"left." + lower(climate), "/" + climate + "/Get", "", "left left.cabin.climate.v1.climate "},
		"authority with escape":     {"right_20seat." + lower(climate), "/" + climate + "/Get", "", "right right_20seat.cabin.climate.v1.climate "},
		"authority with port":       {"left." + lower(climate) + ":15000", "/" + climate + "/Get", "", "left left.cabin.climate.v1.climate "},
		"authority in any case":     {"Left.Cabin.Climate.V1.Climate:80", "/" + climate + "/Get", "", "left Left.Cabin.Climate.V1.Climate "},
		"reflection of a service":   {"left." + lower(climate), "/grpc.reflection.v1.ServerReflection/X", "", "left left.cabin.climate.v1.climate "},
		"authority without version": {"two.legacy.thermo", "/legacy.Thermo/Get", "", "thermo2 two.legacy.thermo "},
		"instance and authority":    {"left." + lower(climate), "/" + climate + "/Get", "left", "left left.cabin.climate.v1.climate left"},
		"instance":                  {"", "/" + climate + "/Get", "Right Seat", "right " + a.host() + " Right Seat"},
		"instance without version":  {"", "/legacy.Thermo/Get", "two", "thermo2 " + a.host() + " two"},
		"path, the only instance":   {"", "/" + trip + "/Get", "", "trip default.cabin.trip.v1.tripcomputer "},
		"path, the first instance":  {"", "/" + climate + "/Get", "", "left left.cabin.climate.v1.climate left"},
		"path, foreign authority":   {"center.vehicle.lan", "/" + trip + "/Get", "", "trip default.cabin.trip.v1.tripcomputer "},
		"reflection of the mesh":    {"", "/grpc.reflection.v1.ServerReflection/X", "", "gateway-of-center " + a.host() + " "},
		"health of the mesh":        {"", "/grpc.health.v1.Health/Check", "", "gateway-of-center " + a.host() + " "},
		"catalogue":                 {"", "/carisma.v1.Catalog/List", "", "gateway-of-center " + a.host() + " "},
		"instance and reflection":   {"", "/grpc.reflection.v1.ServerReflection/X", "left", "gateway-of-center " + a.host() + " left"},
		"contradiction":             {"left." + lower(climate), "/" + climate + "/Get", "right", "gateway-of-center left.cabin.climate.v1.climate right"},
		"unknown service":           {"rear." + lower(climate), "/" + climate + "/Get", "", "NotFound: no service rear.cabin.climate.v1.climate in the mesh"},
		"unknown instance":          {"", "/" + climate + "/Get", "rear", "NotFound: no service " + a.host() + " in the mesh"},
		"unknown interface":         {"", "/cabin.seat.v1.Seat/Get", "", "Unimplemented: no such interface in the mesh"},
		"cluster of the proxy":      {"xds", "/" + trip + "/Get", "", "trip default.cabin.trip.v1.tripcomputer "},
		"inner cluster":             {"gateway", "/" + trip + "/Get", "", "trip default.cabin.trip.v1.tripcomputer "},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, dial(t, a.egress(), c.authority).call(c.method, c.instance))
		})
	}
	t.Run("unix socket", func(t *testing.T) {
		c := dial(t, "unix:"+a.req.GetProxy().GetEgressSocket(), "left."+lower(climate))
		require.Equal(t, "left left.cabin.climate.v1.climate ", c.call("/"+climate+"/Get", ""))
	})
}

func lower(s string) string { return strings.ToLower(s) }

// host is the authority of a caller that dials the egress and names none, once the
// proxy has taken the port off.
func (a *agent) host() string { return a.req.GetProxy().GetEgressAddress() }
