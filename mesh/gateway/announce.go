package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/config"
)

// announce makes an imported instance a service of this node (CAR-15). What came
// from the mesh belongs to the node that announced it.
func (g *gateway) announce(s bridge.State) {
	if s.FromMesh() {
		return
	}
	g.agent.Set(s.Via.String(), agent.Instance{
		Interface: s.Interface.FullName(), Instance: s.Name, Origin: toOrigin(s.Origin),
		Address: "unix:" + g.path(gatewaySocket), Descriptors: s.Descriptors,
		Up: s.Up, Reason: s.Reason, Since: s.Since,
	})
}

func toOrigin(o bridge.Origin) *meshv1.Origin {
	return &meshv1.Origin{
		Protocol: toProtocol(o.Protocol), Network: o.Network,
		ServiceId: uint32(o.ServiceID), InstanceId: uint32(o.InstanceID), Major: o.Major, Minor: o.Minor,
	}
}

func toProtocol(p bridge.Protocol) meshv1.Protocol {
	switch p {
	case bridge.GRPC:
		return meshv1.Protocol_GRPC
	case bridge.SOMEIP:
		return meshv1.Protocol_SOMEIP
	case bridge.DBus:
		return meshv1.Protocol_DBUS
	default:
		return meshv1.Protocol_PROTOCOL_UNSPECIFIED
	}
}

func fromProtocol(p meshv1.Protocol) bridge.Protocol {
	switch p {
	case meshv1.Protocol_GRPC:
		return bridge.GRPC
	case meshv1.Protocol_SOMEIP:
		return bridge.SOMEIP
	case meshv1.Protocol_DBUS:
		return bridge.DBus
	default:
		return 0
	}
}

// nativeSource is the source of the services in the node file.
const nativeSource = "node file"

// natives are the gRPC services of the node file, as probes see them.
type natives struct {
	mu   sync.Mutex
	list []agent.Instance
}

// probeNatives watches the services of the node file and announces their state.
func (g *gateway) probeNatives(ctx context.Context) error {
	var group errgroup.Group
	for _, s := range g.node.Services {
		group.Go(func() error {
			return agent.Probe(ctx, s.Address, s.Interface, func(up bool, reason string) {
				g.setNative(s, up, reason)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (g *gateway) setNative(s config.Service, up bool, reason string) {
	in := agent.Instance{
		Interface: s.Interface, Instance: s.Instance, Address: s.Address,
		Origin: &meshv1.Origin{Protocol: meshv1.Protocol_GRPC},
		Up:     up, Reason: reason, Since: time.Now(),
	}
	if known, ok := g.interfaces.ByName(s.Interface); ok {
		in.Descriptors = known.Descriptors
		deployedIDs(in.Origin, known.Interface, s.Instance)
	}
	g.log.Info("native service", "name", in.Name(), "up", up, "reason", reason)
	g.agent.Set(nativeSource, in)
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	for i, before := range g.natives.list {
		if before.Name() == in.Name() {
			g.natives.list[i] = in
			return
		}
	}
	g.natives.list = append(g.natives.list, in)
}

// deployedIDs notes the ids under which SOME/IP clients know a native instance,
// if its interface has some.
func deployedIDs(o *meshv1.Origin, iface *model.Interface, instance string) {
	if iface.SOMEIP == nil {
		return
	}
	id, ok := iface.SOMEIP.InstanceID(instance)
	if !ok {
		return
	}
	o.ServiceId, o.InstanceId = uint32(iface.SOMEIP.ServiceID), uint32(id)
	o.Major, o.Minor = iface.Version.Major, iface.Version.Minor
}

// dropNatives says that the services of the node file are gone.
func (g *gateway) dropNatives(reason string) {
	g.natives.mu.Lock()
	defer g.natives.mu.Unlock()
	for i := range g.natives.list {
		in := &g.natives.list[i]
		if in.Up {
			in.Up, in.Reason, in.Since = false, reason, time.Now()
			g.agent.Set(nativeSource, *in)
		}
	}
}
