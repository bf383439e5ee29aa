package someipadapter

import (
	"context"
	"errors"
	"fmt"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Import implements [bridge.Adapter]. An instance whose interface is not known
// waits until the set of interfaces has it.
func (a *Adapter) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	a.sights.reset()
	imp := importing{
		adapter: a,
		up:      map[someip.InstanceKey]*imported{},
		clients: map[someip.InstanceKey]*runtime.Client{},
	}
	defer imp.end()
	everything := runtime.Filter{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor}
	if err := a.network.Observe(ctx, everything, a.sights.add); err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	grown := a.cfg.Interfaces.Grown()
	for {
		taken, changed := a.sights.take()
		list := imp.follow(taken)
		select {
		case <-grown: // what was unknown may be known now
			grown = a.cfg.Interfaces.Grown()
			for _, av := range a.sights.up() {
				list = imp.came(list, av)
			}
		default:
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
	// clients are those of all instances seen, also of such that went: with its
	// session counter going on, an answer to a call from before a restart matches
	// no call after it.
	clients map[someip.InstanceKey]*runtime.Client
}

// follow returns the offers that follow from news.
func (imp *importing) follow(taken map[someip.InstanceKey]news) (list []bridge.Offer) {
	for key, n := range taken {
		if svc := imp.up[key]; svc != nil && n.went != nil {
			delete(imp.up, key)
			svc.end(callError(&runtime.UnavailableError{Key: key, Reason: n.went.Reason, Since: n.went.Since}))
			list = append(list, bridge.Offer{
				Instance: svc.instance, Reason: string(n.went.Reason), Since: n.went.Since,
			})
		}
		if n.now.Up {
			list = imp.came(list, n.now)
		}
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
	client, err := imp.client(av.Key)
	if err != nil {
		imp.adapter.log.Error("instance not imported", "instance", av.Key, "error", err)
		return list
	}
	svc := imp.adapter.newImported(known, av, client)
	imp.up[av.Key] = svc
	return append(list, bridge.Offer{Instance: svc.instance, Service: svc, Since: av.Since})
}

// client returns the client of an instance. Where there is no client id left, an
// instance that went gives up its own.
func (imp *importing) client(key someip.InstanceKey) (*runtime.Client, error) {
	if c := imp.clients[key]; c != nil {
		return c, nil
	}
	c, err := imp.adapter.network.Client(key)
	if errors.Is(err, runtime.ErrNoClientID) && imp.evict() {
		c, err = imp.adapter.network.Client(key)
	}
	if err != nil {
		return nil, err
	}
	imp.clients[key] = c
	return c, nil
}

func (imp *importing) evict() bool {
	for key, c := range imp.clients {
		if imp.up[key] == nil {
			_ = c.Close() // never fails
			delete(imp.clients, key)
			return true
		}
	}
	return false
}

func (imp *importing) end() {
	for _, svc := range imp.up {
		svc.end(callError(runtime.ErrClosed))
	}
	for _, c := range imp.clients {
		_ = c.Close() // never fails
	}
}

func (a *Adapter) newImported(known bridge.KnownInterface, av runtime.Availability, client *runtime.Client) *imported {
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
	return svc
}
