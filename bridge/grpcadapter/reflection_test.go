package grpcadapter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
)

// asker asks reflection questions on one stream, as grpcurl does.
type asker struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse]
}

func reflect(t *testing.T, conn *grpc.ClientConn, opts ...grpc.CallOption) asker {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context(), opts...)
	require.NoError(t, err)
	return asker{t, stream}
}

func (a asker) ask(req *reflectionv1.ServerReflectionRequest) (*reflectionv1.ServerReflectionResponse, error) {
	a.t.Helper()
	if err := a.stream.Send(req); err != nil {
		_, err = a.stream.Recv()
		return nil, err
	}
	return a.stream.Recv()
}

func (a asker) list() []string {
	a.t.Helper()
	resp, err := a.ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	})
	require.NoError(a.t, err)
	var names []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	return names
}

func (a asker) symbol(name string) *reflectionv1.ServerReflectionResponse {
	a.t.Helper()
	resp, err := a.ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name},
	})
	require.NoError(a.t, err)
	return resp
}

// own are the services of the gateway itself.
var own = []string{"carisma.v1.Catalog", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}

func tripEntry(t *testing.T) grpcadapter.CatalogueEntry {
	t.Helper()
	inst := instance(t, tripName, "default", bridge.Origin{Protocol: bridge.GRPC, Node: "center"})
	return grpcadapter.CatalogueEntry{
		Name: inst.MeshName(), Interface: tripName, Instance: "default", Up: true,
		Descriptors: inst.Descriptors, Origin: inst.Origin, NodeName: "center",
	}
}

// Without an authority reflection answers for the whole mesh, with a mesh name
// for that instance only.
func TestReflection(t *testing.T) {
	s := serve(t)
	gone := s.expose(climate(t, "left"), describe("left"))
	s.SetCatalogue([]grpcadapter.CatalogueEntry{tripEntry(t)})
	conn := s.dial()

	all := reflect(t, conn)
	require.Equal(t, append([]string{climateName, tripName}, own...), all.list())
	for _, symbol := range []string{climateName, climateName + ".Describe", "cabin.climate.v1.Vent", tripName, own[0], "carisma.v1.ErrorDetail"} {
		resp := all.symbol(symbol)
		require.NotEmpty(t, resp.GetFileDescriptorResponse().GetFileDescriptorProto(), "%s: %v", symbol, resp)
	}
	require.EqualValues(t, codes.NotFound, all.symbol("no.such.Thing").GetErrorResponse().GetErrorCode())

	one := reflect(t, conn, grpc.CallAuthority("left.cabin.climate.v1.climate"))
	require.Equal(t, append([]string{climateName}, own...), one.list())
	require.NotNil(t, one.symbol(tripName).GetErrorResponse())

	gone(unavailable())
	require.Equal(t, append([]string{tripName}, own...), all.list(), "what is bridged at that moment")
	_, err := reflect(t, conn, grpc.CallAuthority("left.cabin.climate.v1.climate")).stream.Recv()
	require.Equal(t, codes.Unavailable, grpcstatus.Code(err))
	require.Equal(t, "StopOffer", detail(t, err).GetReason())
	_, err = reflect(t, conn, grpc.CallAuthority("roof.cabin.climate.v1.climate")).stream.Recv()
	require.Equal(t, codes.NotFound, grpcstatus.Code(err))
}

// What reflection gives is enough to build the service: every import is there.
func TestReflectionIsComplete(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), describe("left"))
	resp := reflect(t, s.dial()).symbol(climateName)
	fds := &descriptorpb.FileDescriptorSet{}
	for _, raw := range resp.GetFileDescriptorResponse().GetFileDescriptorProto() {
		f := &descriptorpb.FileDescriptorProto{}
		require.NoError(t, proto.Unmarshal(raw, f))
		fds.File = append(fds.File, f)
	}
	files, err := protodesc.NewFiles(fds)
	require.NoError(t, err)
	_, err = files.FindDescriptorByName(climateName)
	require.NoError(t, err)
}

func TestReflectionExtensions(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), describe("left"))
	a := reflect(t, s.dial())
	resp, err := a.ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_AllExtensionNumbersOfType{
			AllExtensionNumbersOfType: "google.protobuf.ServiceOptions",
		},
	})
	require.NoError(t, err)
	require.Contains(t, resp.GetAllExtensionNumbersResponse().GetExtensionNumber(), int32(53401))
	resp, err = a.ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingExtension{
			FileContainingExtension: &reflectionv1.ExtensionRequest{
				ContainingType: "google.protobuf.MethodOptions", ExtensionNumber: 53403,
			},
		},
	})
	require.NoError(t, err)
	require.NotEmpty(t, resp.GetFileDescriptorResponse().GetFileDescriptorProto())
}

func TestReflectionV1Alpha(t *testing.T) {
	s := serve(t)
	s.expose(climate(t, "left"), describe("left"))
	stream, err := reflectionv1alpha.NewServerReflectionClient(s.dial()).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&reflectionv1alpha.ServerReflectionRequest{ //nolint:staticcheck // older clients speak it
		MessageRequest: &reflectionv1alpha.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: climateName}, //nolint:staticcheck // older clients speak it
	}))
	resp, err := stream.Recv()
	require.NoError(t, err)
	require.NotEmpty(t, resp.GetFileDescriptorResponse().GetFileDescriptorProto()) //nolint:staticcheck // older clients speak it
}

// A descriptor set that cannot be read harms only its own interface.
func TestReflectionBadDescriptors(t *testing.T) {
	s := serve(t)
	bad := tripEntry(t)
	bad.Descriptors = []byte{0xff}
	s.SetCatalogue([]grpcadapter.CatalogueEntry{bad})
	s.expose(climate(t, "left"), describe("left"))
	a := reflect(t, s.dial())
	require.NotNil(t, a.symbol(tripName).GetErrorResponse())
	require.NotNil(t, a.symbol(climateName).GetFileDescriptorResponse())
}
