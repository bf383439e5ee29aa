package someipadapter

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Expose implements [bridge.Adapter]: it offers the instance with the ids of its
// interface's deployment, one of another SOME/IP network with those configured. An offer of the same ids by another host wins: this
// one is not made, or is withdrawn.
func (a *Adapter) Expose(ctx context.Context, inst bridge.Instance, svc bridge.Service) error {
	key, err := a.idsOf(inst)
	if err != nil {
		return err
	}
	if err := a.listen(ctx, key); err != nil {
		return err
	}
	if err := a.sights.conflict(key); err != nil {
		return err
	}
	if inst.Interface == opaque.Interface {
		return a.exposeUnknown(ctx, key, svc)
	}
	x := &exposed{
		adapter: a,
		key:     key,
		svc:     svc,
		iface:   svc.Interface(),
		codecs:  a.codecsOf(svc.Interface()),
		slots:   make(chan struct{}, a.cfg.MaxRequests),
		demands: map[uint16]*demand{},
		rival:   make(rivals, 1),
	}
	for id := range x.codecs.eventByID {
		x.demands[id] = newDemand()
	}
	for _, p := range x.codecs.problems {
		a.log.Warn("element not exposed", "instance", key, "problem", p)
	}
	if err := a.deploy(key, x.iface); err != nil {
		return err
	}
	x.offering, err = a.network.Offer(x.config())
	if err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var forwards sync.WaitGroup
	for _, c := range x.codecs.events {
		forwards.Go(func() { x.forward(ctx, c) })
	}
	select {
	case peer := <-x.rival:
		err = a.sights.rival(key, peer)
	case <-ctx.Done():
	}
	x.offering.Stop()
	cancel()
	forwards.Wait()
	drain(x.slots)
	return err
}

// rivals takes the address of the first host that offers the same.
type rivals chan netip.AddrPort

func (r rivals) add(peer netip.AddrPort) {
	select {
	case r <- peer:
	default:
	}
}

// idsOf returns the SOME/IP ids of an instance.
func (a *Adapter) idsOf(inst bridge.Instance) (someip.InstanceKey, error) {
	if inst.Origin.Protocol == bridge.SOMEIP {
		if a.cfg.IDs != nil {
			if key, ok := a.cfg.IDs(inst); ok {
				return key, nil
			}
		}
		return someip.InstanceKey{}, &bridge.NotExposableError{Reason: "no rule gives it ids on this network"}
	}
	dep := inst.Interface.SOMEIP
	if dep == nil {
		return someip.InstanceKey{}, &bridge.NotExposableError{
			Reason: fmt.Sprintf("interface %s has no SOME/IP service id", inst.Interface.FullName()),
		}
	}
	id, ok := dep.InstanceID(inst.Name)
	if !ok {
		return someip.InstanceKey{}, &bridge.NotExposableError{
			Reason: fmt.Sprintf("interface %s has no SOME/IP instance id for %q", inst.Interface.FullName(), inst.Name),
		}
	}
	if inst.Interface.Version.Major > maxMajor {
		return someip.InstanceKey{}, &bridge.NotExposableError{
			Reason: fmt.Sprintf("major version %d does not fit SOME/IP", inst.Interface.Version.Major),
		}
	}
	return someip.InstanceKey{Service: dep.ServiceID, Instance: id, Major: uint8(inst.Interface.Version.Major)}, nil
}

// config describes the offer. It has a port for each transport that the
// interface uses.
func (x *exposed) config() runtime.ServiceConfig {
	cfg := runtime.ServiceConfig{
		Service: x.key.Service, Instance: x.key.Instance, Major: x.key.Major,
		Minor:          x.iface.Version.Minor,
		Methods:        []runtime.MethodConfig{}, // not nil: others are unknown
		Handler:        x,
		OnConflict:     x.rival.add,
		IgnoreConflict: x.adapter.stands,
		Configuration:  []string{marker + x.adapter.cfg.Node},
		OnSubscribers:  func(event uint16, endpoints int) { x.demands[event].set(endpoints > 0) },
	}
	use := func(e *model.SOMEIPElement) {
		if e.Reliable {
			cfg.TCPPort = runtime.AutoPort
		} else {
			cfg.UDPPort = runtime.AutoPort
		}
	}
	for _, c := range x.codecs.methods {
		use(c.SOMEIP)
		cfg.Methods = append(cfg.Methods, runtime.MethodConfig{ID: c.SOMEIP.ID, FireAndForget: c.FireAndForget})
	}
	for _, c := range x.codecs.events {
		use(c.SOMEIP)
		cfg.Events = append(cfg.Events, runtime.EventConfig{
			ID: c.SOMEIP.ID, Reliable: c.SOMEIP.Reliable, Eventgroups: c.SOMEIP.Eventgroups, Field: c.Field != nil,
		})
	}
	if cfg.UDPPort == 0 && cfg.TCPPort == 0 {
		cfg.UDPPort = runtime.AutoPort
	}
	return cfg
}
