package someipadapter

import (
	"context"
	"fmt"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Import implements [bridge.Adapter]. An instance whose interface is not known
// waits until the set of interfaces has it.
func (a *Adapter) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	a.sights.reset()
	defer a.closeClients()
	everything := runtime.Filter{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor}
	if err := a.network.Observe(ctx, everything, a.sights.add); err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	imp := importing{adapter: a, up: map[someip.InstanceKey]*imported{}}
	defer imp.endAll()
	for {
		grown := a.cfg.Interfaces.Grown()
		taken, changed := a.sights.take()
		list := imp.follow(taken)
		for _, av := range a.sights.up() { // some of an interface that was unknown
			list = imp.came(list, av)
		}
		for _, o := range list {
			select {
			case offers <- o:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-changed:
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// importing is the state of one run of Import.
type importing struct {
	adapter *Adapter
	up      map[someip.InstanceKey]*imported
}

// follow returns the offers that follow from news.
func (imp *importing) follow(taken map[someip.InstanceKey]news) (list []bridge.Offer) {
	for key, n := range taken {
		svc := imp.up[key]
		if svc == nil || n.went == nil {
			continue
		}
		delete(imp.up, key)
		svc.end(callError(&runtime.UnavailableError{Key: key, Reason: n.went.Reason, Since: n.went.Since}))
		list = append(list, bridge.Offer{
			Instance: svc.instance, Reason: string(n.went.Reason), Since: n.went.Since,
		})
	}
	return list
}

// came adds the offer of an instance that is there and is not imported yet.
func (imp *importing) came(list []bridge.Offer, av runtime.Availability) []bridge.Offer {
	if imp.up[av.Key] != nil {
		return list
	}
	known, ok := imp.adapter.cfg.Interfaces.BySOMEIP(av.Key.Service, uint32(av.Key.Major))
	if !ok {
		return list
	}
	svc, err := imp.adapter.newImported(known, av)
	if err != nil {
		imp.adapter.log.Error("instance not imported", "instance", av.Key, "error", err)
		return list
	}
	imp.up[av.Key] = svc
	return append(list, bridge.Offer{Instance: svc.instance, Service: svc, Since: av.Since})
}

func (imp *importing) endAll() {
	for _, svc := range imp.up {
		svc.end(callError(runtime.ErrClosed))
	}
}

func (a *Adapter) newImported(known bridge.KnownInterface, av runtime.Availability) (*imported, error) {
	client, err := a.client(av.Key)
	if err != nil {
		return nil, err
	}
	svc := &imported{
		instance: bridge.Instance{
			Interface: known.Interface,
			Name:      known.SOMEIP.InstanceName(av.Key.Instance),
			Origin: bridge.Origin{
				Protocol: bridge.SOMEIP, Network: a.network.Name(),
				ServiceID: av.Key.Service, InstanceID: av.Key.Instance,
				Major: uint32(av.Key.Major), Minor: av.Minor, Node: a.cfg.Node,
			},
			Descriptors: known.Descriptors,
		},
		since:   av.Since,
		network: a.network.Name(),
		client:  client,
		codecs:  a.codecsOf(known.Interface),
		log:     a.log,
		groups:  map[uint16]*group{},
		gone:    make(chan struct{}),
	}
	for _, p := range svc.codecs.problems {
		a.log.Warn("element not bridged", "instance", av.Key, "problem", p)
	}
	return svc, nil
}

// client returns the client of an instance. It outlives the instance: with its
// session counter going on, an answer to a call from before a restart matches
// no call after it.
func (a *Adapter) client(key someip.InstanceKey) (*runtime.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[key]; c != nil {
		return c, nil
	}
	c, err := a.network.Client(key)
	if err == nil {
		a.clients[key] = c
	}
	return c, err
}

func (a *Adapter) closeClients() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, c := range a.clients {
		_ = c.Close() // never fails
		delete(a.clients, key)
	}
}
