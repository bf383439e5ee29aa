package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/relay"
	"carisma.dev/gateway/mesh/unixsock"
)

type gateway struct {
	node    *config.Node
	opts    Options
	log     *slog.Logger
	state   string
	started time.Time

	lock       *os.File
	listeners  listeners
	interfaces *bridge.Interfaces
	expected   [][]byte // descriptor sets of instances that the networks may bring
	table      *bridge.Table
	networks   []*network
	server     *grpcadapter.Server
	importer   *grpcadapter.Importer
	natives    natives
	catalogue  catalogue
	agent      *agent.Agent
	relay      *relay.Relay
	configured chan struct{} // closed when Envoy has taken its listeners
	supervisor *envoy.Supervisor
}

type listeners struct {
	gateway, ads, admin net.Listener
}

// newGateway checks everything that can be wrong before anything is visible to
// others, and binds the sockets.
func newGateway(ctx context.Context, node *config.Node, opts Options) (g *gateway, err error) {
	state, err := filepath.Abs(node.State)
	if err != nil {
		return nil, err
	}
	g = &gateway{
		node: node, opts: opts, state: state, log: opts.Logger.With("component", "gateway"),
		started: time.Now(), interfaces: bridge.NewInterfaces(), configured: make(chan struct{}),
		catalogue: catalogue{read: map[string]struct{}{}, paths: map[string]bool{}},
	}
	defer func(built *gateway) {
		if err != nil {
			built.close()
		}
	}(g)
	if err := unixsock.Check(node.Egress.Socket); err != nil {
		return nil, err
	}
	if err := g.lockState(); err != nil {
		return nil, err
	}
	if err := g.loadNatives(); err != nil {
		return nil, err
	}
	var program string
	var version envoy.Version
	var checks errgroup.Group // Envoy tells its version in 50 ms
	checks.Go(func() (err error) {
		program, version, err = envoy.Find(ctx, g.envoyPath())
		return err
	})
	checks.Go(g.loadInterfaces)
	if err := checks.Wait(); err != nil {
		return nil, err
	}
	if g.supervisor, err = envoy.New(envoy.Config{
		Program: program, Version: version, LogLevel: string(node.Envoy.LogLevel), NodeName: node.Name,
		State: state, ADSSocket: g.path(adsSocket), Keep: opts.KeepEnvoy, Logger: opts.Logger,
	}); err != nil {
		return nil, err
	}
	if err := g.buildMesh(); err != nil {
		return nil, err
	}
	if err := g.buildBridge(); err != nil {
		return nil, err
	}
	return g, g.listen(ctx)
}

// lockState keeps a second gateway away from the state directory.
func (g *gateway) lockState() error {
	// Others may pass: egress.sock in it is for every user.
	if err := os.MkdirAll(g.state, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(g.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("state directory %s is in use by another gateway: %w", g.state, err), f.Close())
	}
	g.lock = f
	return nil
}

// envoyPath returns the program that the caller or the node file names. The
// default of the node file leaves the choice to the environment.
func (g *gateway) envoyPath() string {
	switch {
	case g.opts.EnvoyPath != "":
		return g.opts.EnvoyPath
	case g.node.Envoy.Path != "envoy":
		return g.node.Envoy.Path
	default:
		return ""
	}
}

func (g *gateway) loadInterfaces() error {
	if len(g.node.Interfaces) == 0 {
		return nil
	}
	set, err := proto.Load(g.node.Interfaces...)
	if err != nil {
		return err
	}
	for _, i := range set.Interfaces {
		descriptors := set.Descriptors(i.FullName())
		if err := g.interfaces.Add(i, descriptors); err != nil {
			return err
		}
		if i.SOMEIP != nil && len(g.node.Networks) > 0 {
			g.expected = append(g.expected, descriptors)
		}
	}
	return nil
}

func (g *gateway) buildMesh() (err error) {
	n := g.node
	g.agent, err = agent.New(agent.Config{
		Name: n.Name, Address: n.Address, Central: n.Role == config.Central,
		Proxy: &meshv1.ProxyEndpoints{
			IngressAddress: n.Address.String(), IngressPort: uint32(n.Ingress.Port),
			EgressAddress: n.Egress.Address.String(), EgressPort: uint32(n.Egress.Port),
			EgressSocket: n.Egress.Socket, GatewaySocket: g.path(gatewaySocket),
		},
		ControlPlane: n.ControlPlane.String(), State: g.state, Complete: g.natives.asked,
		OnIdentity: func(id api.Identity) { g.supervisor.SetNodeID(id.ID) }, // CAR-11
		OnServices: g.setCatalogue,
		Logger:     g.opts.Logger,
	})
	if err != nil {
		return err
	}
	for _, set := range g.expected {
		g.agent.Expect(set)
	}
	g.relay = relay.New(relay.Config{
		Central: g.agent, Await: g.agent.Await, Store: g.path(adsStore),
		NodeID:  func() string { return g.agent.Identity().ID },
		Changed: g.envoyAnswered, Clusters: g.setPaths, Logger: g.opts.Logger,
	})
	return nil
}

func (g *gateway) buildBridge() (err error) {
	g.server = grpcadapter.NewServer(grpcadapter.ServerConfig{Node: g.node.Name, Mesh: true, Logger: g.opts.Logger})
	g.importer, err = grpcadapter.NewImporter(grpcadapter.ImporterConfig{
		Egress: "unix:" + g.node.Egress.Socket, Wanted: g.wanted, Logger: g.opts.Logger,
	})
	if err != nil {
		return err
	}
	g.table = bridge.NewTable(bridge.Config{Policy: g.policy, Logger: g.opts.Logger})
	err = g.table.Attach(grpcadapter.Network, grpcadapter.Adapter{Server: g.server, Importer: g.importer})
	for i := range g.node.Networks {
		n := newNetwork(g, &g.node.Networks[i])
		g.networks = append(g.networks, n)
		err = errors.Join(err, g.table.Attach(n.on(), n))
	}
	return err
}

func (g *gateway) listen(ctx context.Context) (err error) {
	for _, l := range []struct {
		at   *net.Listener
		file string
	}{
		{&g.listeners.gateway, gatewaySocket},
		{&g.listeners.ads, adsSocket},
		{&g.listeners.admin, adminSocket},
	} {
		if *l.at, err = unixsock.Listen(ctx, g.path(l.file), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// close releases what newGateway took; what ran has ended.
func (g *gateway) close() {
	for _, l := range []net.Listener{g.listeners.gateway, g.listeners.ads, g.listeners.admin} {
		if l != nil {
			l.Close()
		}
	}
	if g.importer != nil {
		g.importer.Close()
	}
	if g.lock != nil {
		g.lock.Close()
	}
}
