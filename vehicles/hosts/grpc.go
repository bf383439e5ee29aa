package hosts

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// NewClient returns a gRPC connection from the host to an address. Like
// grpc.NewClient it connects when it is used; close it before the World.
func (h *Host) NewClient(address string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return h.Dial(ctx, "tcp", address)
		}),
	}, opts...)...)
}
