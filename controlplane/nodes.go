package controlplane

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// nodeService serves meshv1.NodeRegistry.
type nodeService struct {
	meshv1.UnimplementedNodeRegistryServer
	registry *registry.Registry
}

// identity returns what a request proves. The registry judges it; that of a
// request that carries none names no node.
func identity(ctx context.Context) api.Identity {
	id, _ := api.FromIncoming(ctx)
	return id
}

// checkReader validates the identity of a request that only reads, if it has one:
// operators' tools have none.
func checkReader(ctx context.Context, r *registry.Registry) error {
	if id, ok := api.FromIncoming(ctx); ok {
		return r.Check(id)
	}
	return nil
}

// Register implements meshv1.NodeRegistryServer.
func (s *nodeService) Register(ctx context.Context, req *meshv1.RegisterRequest) (*meshv1.RegisterResponse, error) {
	// What does not parse stays invalid, and the registry says what it is.
	address, _ := netip.ParseAddr(req.GetAddress())
	id, resumed, err := s.registry.Register(registry.Registration{
		Node: store.Node{
			Name: req.GetName(), Address: address.Unmap(), Central: req.GetCentral(),
			Proxy:     proxyOf(req.GetProxy()),
			MachineID: req.GetMachineId(), BootID: req.GetBootId(), BootTime: req.GetBootTime(),
		},
		Resume: api.Identity{ID: req.GetResumeId(), Epoch: req.GetResumeEpoch()},
		Peer:   peerHost(ctx),
	})
	if err != nil {
		return nil, err
	}
	return &meshv1.RegisterResponse{Id: id.ID, Epoch: id.Epoch, Resumed: resumed}, nil
}

// peerHost returns the address that a request comes from, without its port.
func peerHost(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return ""
	}
	return at.Addr().Unmap().String()
}

func proxyOf(p *meshv1.ProxyEndpoints) *store.Proxy {
	if p == nil {
		return nil
	}
	return &store.Proxy{
		Ingress:      addrPort(p.GetIngressAddress(), p.GetIngressPort()),
		Egress:       addrPort(p.GetEgressAddress(), p.GetEgressPort()),
		EgressSocket: p.GetEgressSocket(), GatewaySocket: p.GetGatewaySocket(),
	}
}

func addrPort(address string, port uint32) netip.AddrPort {
	a, err := netip.ParseAddr(address)
	if err != nil || port > 0xFFFF {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(port))
}

// KeepAlive implements meshv1.NodeRegistryServer. The lease runs out by itself
// when beats stay away; the stream ends at once when another registration takes
// over.
func (s *nodeService) KeepAlive(stream grpc.BidiStreamingServer[meshv1.KeepAliveRequest, meshv1.KeepAliveResponse]) error {
	id := identity(stream.Context())
	session, err := s.registry.Open(id)
	if err != nil {
		return err
	}
	beats := make(chan error, 1)
	go func() { beats <- s.beat(stream, id) }() // ends with the stream
	select {
	case err := <-beats:
		return err
	case <-session.Done():
		return session.Err()
	}
}

func (s *nodeService) beat(stream grpc.BidiStreamingServer[meshv1.KeepAliveRequest, meshv1.KeepAliveResponse], id api.Identity) error {
	answer := &meshv1.KeepAliveResponse{}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.registry.Beat(id); err != nil {
			return err
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// ListNodes implements meshv1.NodeRegistryServer (CAR-9).
func (s *nodeService) ListNodes(ctx context.Context, _ *meshv1.ListNodesRequest) (*meshv1.ListNodesResponse, error) {
	if err := checkReader(ctx, s.registry); err != nil {
		return nil, err
	}
	resp := &meshv1.ListNodesResponse{}
	for _, n := range sortedNodes(s.registry.Snapshot()) {
		resp.Nodes = append(resp.Nodes, nodeProto(n))
	}
	return resp, nil
}

func sortedNodes(snap *registry.Snapshot) []*registry.Node {
	return slices.SortedFunc(maps.Values(snap.Nodes), func(a, b *registry.Node) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

func nodeProto(n *registry.Node) *meshv1.Node {
	m := &meshv1.Node{
		Id: n.ID, Epoch: n.Epoch, Name: n.Name, Address: n.Address.String(), Central: n.Central,
		Registered: timestamppb.New(n.Registered), Since: timestamppb.New(n.Since),
		State: meshv1.NodeState_NODE_UP,
	}
	if n.Lost {
		m.State = meshv1.NodeState_NODE_LOST
	}
	if p := n.Proxy; p != nil {
		m.IngressPort = uint32(p.Ingress.Port())
		m.Proxy = &meshv1.ProxyEndpoints{
			IngressAddress: p.Ingress.Addr().String(), IngressPort: uint32(p.Ingress.Port()),
			EgressAddress: p.Egress.Addr().String(), EgressPort: uint32(p.Egress.Port()),
			EgressSocket: p.EgressSocket, GatewaySocket: p.GatewaySocket,
		}
	}
	return m
}

// invalid makes an INVALID_ARGUMENT for what the registry never sees.
func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}
