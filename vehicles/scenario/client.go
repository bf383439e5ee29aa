package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jhump/protoreflect/v2/grpcreflect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/vehicles/hosts"
)

// client is a gRPC client on a host that knows one address and no interface:
// what it needs to know of those it asks by reflection.
type client struct {
	conn    *grpc.ClientConn
	methods map[string]protoreflect.MethodDescriptor
}

func newClient(h *hosts.Host, egress string) (*client, error) {
	conn, err := h.NewClient(egress)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, methods: map[string]protoreflect.MethodDescriptor{}}, nil
}

func (c *client) close() error { return c.conn.Close() }

// reflection asks without an authority, so the HPC's own gateway answers, for
// the whole mesh.
func (c *client) reflection(ctx context.Context) *grpcreflect.Client {
	return grpcreflect.NewClientAuto(ctx, c.conn)
}

func (c *client) method(ctx context.Context, name string) (protoreflect.MethodDescriptor, error) {
	if m, ok := c.methods[name]; ok {
		return m, nil
	}
	r := c.reflection(ctx)
	defer r.Reset()
	symbol := strings.ReplaceAll(name, "/", ".")
	file, err := r.FileContainingSymbol(protoreflect.FullName(symbol))
	if err != nil {
		return nil, fmt.Errorf("reflection of %s: %w", name, err)
	}
	service, rpc, _ := strings.Cut(name, "/")
	sd := file.Services().ByName(protoreflect.FullName(service).Name())
	if sd == nil || sd.FullName() != protoreflect.FullName(service) || sd.Methods().ByName(protoreflect.Name(rpc)) == nil {
		return nil, fmt.Errorf("reflection of %s: %s has no such rpc", name, file.Path())
	}
	m := sd.Methods().ByName(protoreflect.Name(rpc))
	c.methods[name] = m
	return m, nil
}

// outgoing returns the context and options that address a target.
func outgoing(ctx context.Context, t *Target) (context.Context, []grpc.CallOption) {
	if t.Instance != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, api.InstanceHeader, t.Instance)
	}
	if t.Authority == "" {
		return ctx, nil
	}
	return ctx, []grpc.CallOption{grpc.CallAuthority(t.Authority)}
}

func (c *client) request(ctx context.Context, t *Target) (protoreflect.MethodDescriptor, proto.Message, error) {
	m, err := c.method(ctx, t.Method)
	if err != nil {
		return nil, nil, err
	}
	in := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal([]byte(t.Request.orEmpty()), in); err != nil {
		return nil, nil, fmt.Errorf("request of %s: %w", t.Method, err)
	}
	return m, in, nil
}

// call returns the response as JSON.
func (c *client) call(ctx context.Context, t *Target) (string, error) {
	m, in, err := c.request(ctx, t)
	if err != nil {
		return "", err
	}
	out := dynamicpb.NewMessage(m.Output())
	ctx, opts := outgoing(ctx, t)
	if err := c.conn.Invoke(ctx, "/"+t.Method, in, out, opts...); err != nil {
		return "", err
	}
	return toJSON(out)
}

// open opens a server stream.
func (c *client) open(ctx context.Context, t *Target) (*stream, error) {
	m, in, err := c.request(ctx, t)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ctx, opts := outgoing(ctx, t)
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/"+t.Method, opts...)
	if err == nil {
		err = s.SendMsg(in)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return startStream(s, m.Output(), cancel), nil
}

// up asks the service itself, through the mesh, whether it serves.
func (c *client) up(ctx context.Context, name string) error {
	out, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.CallAuthority(name))
	if err != nil {
		return err
	}
	if out.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("%s is %s", name, out.GetStatus())
	}
	return nil
}

// toJSON writes a message in one form only: protojson varies its white space.
func toJSON(m proto.Message) (string, error) {
	b, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		return "", err
	}
	return out.String(), nil
}
