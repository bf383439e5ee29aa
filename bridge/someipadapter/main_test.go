package someipadapter_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/grpcadapter"
	"carisma.dev/gateway/bridge/someipadapter"
	ifaceproto "carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// TestMain is also the ECU process of tests that kill one.
func TestMain(m *testing.M) {
	if d := os.Getenv(ecuProcess); d != "" {
		runECUProcess(d)
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func eventually(tb testing.TB, ok func() bool, what string) {
	tb.Helper()
	require.Eventually(tb, ok, patience, time.Millisecond, what)
}

func receive[T any](tb testing.TB, ch <-chan T) T {
	tb.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(tb, "nothing came")
		panic("unreachable")
	}
}

var domains atomic.Uint32

// domain is the SD domain of one test: addresses, a group and a port of its own.
type domain struct {
	part  byte // tells processes apart that run these tests at the same time
	net   byte
	port  uint16
	quiet bool // each offer goes out once, and unasked not again
}

func newDomain(tb testing.TB) domain {
	tb.Helper()
	c, err := net.ListenPacket("udp4", ":0")
	require.NoError(tb, err)
	defer c.Close()
	return domain{part: byte(128 + os.Getpid()%64), net: byte(domains.Add(1)), port: c.LocalAddr().(*net.UDPAddr).AddrPort().Port()}
}

// start starts a host with fast service discovery.
func (d domain) start(host byte) (*runtime.Stack, error) { return d.startAs("ecu", host) }

// startAs starts a host on a network with a name of its own.
func (d domain) startAs(name string, host byte) (*runtime.Stack, error) {
	ids := 0x1100 + uint16(host)*16
	sd := runtime.SDConfig{
		Group: netip.AddrFrom4([4]byte{239, 192, d.part, d.net}), Port: d.port,
		InitialDelayMax: -1, RequestResponseMax: -1,
		RepetitionsBaseDelay: 10 * time.Millisecond, CyclicOfferDelay: 100 * time.Millisecond,
		TTL: 5 * time.Second, SubscribeTTL: 5 * time.Second, // a loaded machine keeps them
	}
	if d.quiet {
		sd.RepetitionsMax, sd.CyclicOfferDelay, sd.TTL = -1, time.Hour, 2*time.Hour
	}
	return runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
		Name:      name,
		Address:   netip.PrefixFrom(netip.AddrFrom4([4]byte{127, d.part, d.net, host}), 24),
		SD:        sd,
		ClientIDs: runtime.Range{First: ids, Last: ids + 15},
		Ports:     runtime.Range{First: 31000, Last: 31063},
	}}})
}

// host starts a host for the time of the test.
func (d domain) host(tb testing.TB, number byte) *runtime.Network {
	tb.Helper()
	s, err := d.start(number)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s.Network("ecu")
}

// loaded are the interfaces of the sample vehicle.
var loaded = sync.OnceValues(func() (*ifaceproto.Set, error) {
	return ifaceproto.Load(filepath.Join("..", "..", "vehicles", "cabin", "interfaces"))
})

const (
	climateName = "cabin.climate.v1.Climate"
	tripName    = "cabin.trip.v1.TripComputer"
	leftName    = "left.cabin.climate.v1.climate"
	tripMesh    = "default.cabin.trip.v1.tripcomputer"
)

func known(tb testing.TB, name string) bridge.KnownInterface {
	tb.Helper()
	set, err := loaded()
	require.NoError(tb, err)
	iface := set.Interface(name)
	require.NotNil(tb, iface)
	return bridge.KnownInterface{Interface: iface, Descriptors: set.Descriptors(name)}
}

// mesh is the gRPC side: the real server, and what a test imports.
type mesh struct {
	*grpcadapter.Server
	offers chan bridge.Offer
}

func (m mesh) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	for {
		select {
		case o := <-m.offers:
			offers <- o
		case <-ctx.Done():
			return nil
		}
	}
}

// gateway is a gateway on host 1: a table with the SOME/IP and the gRPC side.
type gateway struct {
	*bridge.Table
	tb         testing.TB
	interfaces *bridge.Interfaces
	mesh       mesh
	conn       *grpc.ClientConn
	address    string // of the gRPC server
}

func newGateway(tb testing.TB, d domain, interfaces ...string) *gateway {
	tb.Helper()
	return newGatewayOn(tb, d.host(tb, 1), "rear", nil, nil, interfaces...)
}

// newGatewayOn is a gateway at a host, with rules of what else it exposes there.
func newGatewayOn(tb testing.TB, network *runtime.Network, node string, policy bridge.Policy,
	ids func(bridge.Instance) (someip.InstanceKey, bool), interfaces ...string,
) *gateway {
	tb.Helper()
	g := &gateway{
		Table: bridge.NewTable(bridge.Config{Policy: policy}), tb: tb, interfaces: bridge.NewInterfaces(),
		mesh: mesh{grpcadapter.NewServer(grpcadapter.ServerConfig{Node: node}), make(chan bridge.Offer)},
	}
	for _, name := range interfaces {
		g.learn(name)
	}
	adapter := someipadapter.New(someipadapter.Config{Network: network, Interfaces: g.interfaces, Node: node, IDs: ids})
	require.NoError(tb, g.Attach(adapter.Network(), adapter))
	require.NoError(tb, g.Attach(grpcadapter.Network, g.mesh))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	g.address = l.Addr().String()
	g.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = g.Run(ctx) })
	run.Go(func() { _ = g.mesh.Serve(ctx, l) })
	tb.Cleanup(func() {
		cancel()
		run.Wait()
		require.NoError(tb, g.conn.Close())
	})
	return g
}

func (g *gateway) learn(name string) {
	g.tb.Helper()
	k := known(g.tb, name)
	require.NoError(g.tb, g.interfaces.Add(k.Interface, k.Descriptors))
}

// up waits until an instance can, or cannot, be called.
func (g *gateway) up(meshName string, up bool) {
	g.tb.Helper()
	eventually(g.tb, func() bool { return g.mesh.Serves(meshName) == up }, fmt.Sprintf("%s up: %t", meshName, up))
}

// bridge returns the state of an instance and its exposures.
func (g *gateway) bridge(meshName string) (b bridge.Bridge) {
	for _, b := range g.Plan() {
		if b.MeshName() == meshName {
			return b
		}
	}
	return b
}
