package agent

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

const (
	callTimeout = 2 * time.Second
	dialTimeout = time.Second
	maxMessage  = 64 << 20
)

// session is one registration over one connection: it lasts until the first of
// its parts fails. A connection that went silent is not used again, for its
// socket may be half open.
func (a *Agent) session(ctx context.Context) (err error) {
	bearer := &bearer{}
	conn, err := grpc.NewClient("passthrough:///"+a.cfg.ControlPlane,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: backoffMin, Multiplier: 1.6, MaxDelay: backoffMax},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithChainUnaryInterceptor(bearer.unary),
		grpc.WithChainStreamInterceptor(bearer.stream),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer func() { a.disconnected(err) }()

	id, err := a.register(ctx, meshv1.NewNodeRegistryClient(conn))
	if err != nil {
		return err
	}
	bearer.id = id // before any other use of the connection

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { // nothing waits for the disk
		if err := storeIdentity(a.cfg.State, a.cfg.Name, id); err != nil {
			return fmt.Errorf("node id not stored: %w", err)
		}
		return nil
	})
	g.Go(func() error { return a.keepAlive(ctx, meshv1.NewNodeRegistryClient(conn)) })
	g.Go(func() error { return a.exchange(ctx, conn) })
	return g.Wait()
}

// exchange tells the control plane what the node has, and hears what the mesh has.
// A node that lived through the loss of its connection tells first: until then the
// control plane takes what it has for lost, and its own proxy would, too.
func (a *Agent) exchange(ctx context.Context, conn *grpc.ClientConn) error {
	services := meshv1.NewServiceRegistryClient(conn)
	stored := &hashes{}
	first := a.complete()
	if first {
		if err := a.synchronize(ctx, services, stored); err != nil {
			return err
		}
	}
	a.connected(conn)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if !first {
			if err := a.completed(ctx); err != nil {
				return err
			}
			if err := a.synchronize(ctx, services, stored); err != nil {
				return err
			}
		}
		return a.announce(ctx, services, stored)
	})
	g.Go(func() error { return a.follow(ctx, services) })
	return g.Wait()
}

// complete reports whether the list has all that the node has.
func (a *Agent) complete() bool {
	select {
	case <-a.cfg.Complete:
		return true
	default:
		return a.cfg.Complete == nil
	}
}

// completed waits until the list has all that the node has.
func (a *Agent) completed(ctx context.Context) error {
	if a.cfg.Complete == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-a.cfg.Complete:
		return nil
	}
}

// register makes the node known, or resumes what an earlier run or session held
// (CAR-10). Told that the id is unknown, it registers anew.
func (a *Agent) register(ctx context.Context, registry meshv1.NodeRegistryClient) (api.Identity, error) {
	held := a.Identity()
	boot := thisBoot()
	for {
		req := &meshv1.RegisterRequest{
			Name: a.cfg.Name, Address: a.cfg.Address.String(), Central: a.cfg.Central, Proxy: a.cfg.Proxy,
			ResumeId: held.ID, ResumeEpoch: held.Epoch,
			MachineId: boot.machine, BootId: boot.id, BootTime: boot.time,
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		resp, err := registry.Register(callCtx, req)
		cancel()
		if status.Code(err) == codes.NotFound && held.ID != "" {
			a.log.Warn("node id is unknown to the control plane, registering anew", "id", held.ID)
			held = api.Identity{}
			continue
		}
		if status.Code(err) == codes.InvalidArgument {
			return api.Identity{}, &RefusedError{Node: a.cfg.Name, Err: err}
		}
		if err != nil {
			return api.Identity{}, err
		}
		id := api.Identity{ID: resp.GetId(), Epoch: resp.GetEpoch()}
		a.mu.Lock()
		a.identity = id
		a.mu.Unlock()
		a.log.Info("registered", "node_id", id.ID, "epoch", id.Epoch, "resumed", resp.GetResumed())
		if a.cfg.OnIdentity != nil {
			a.cfg.OnIdentity(id)
		}
		return id, nil
	}
}

// bearer puts the node's identity on every request but the registration (CAR-12).
type bearer struct {
	id api.Identity
}

func (b *bearer) context(ctx context.Context, method string) context.Context {
	if method == meshv1.NodeRegistry_Register_FullMethodName {
		return ctx
	}
	return api.NewOutgoing(ctx, b.id)
}

func (b *bearer) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(b.context(ctx, method), method, req, reply, cc, opts...)
}

func (b *bearer) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(b.context(ctx, method), desc, cc, method, opts...)
}
