package someipadapter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Import implements [bridge.Adapter]. An instance whose interface is not known is
// opaque until the set of interfaces has it.
func (a *Adapter) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	a.sights.reset()
	imp := importing{
		adapter: a,
		up:      map[someip.InstanceKey]present{},
		found:   map[someip.InstanceKey]bool{},
		clients: newClients(a.network),
	}
	defer imp.end()
	everything := runtime.Filter{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor}
	if err := a.network.Observe(ctx, everything, a.sights.add); err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	grown := a.cfg.Interfaces.Grown()
	if err := imp.find(ctx); err != nil {
		return err
	}
	for {
		taken, changed := a.sights.take()
		list := imp.follow(taken)
		select {
		case <-grown: // what was unknown may be known now
			grown = a.cfg.Interfaces.Grown()
			if err := imp.find(ctx); err != nil {
				return err
			}
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
	up      map[someip.InstanceKey]present
	found   map[someip.InstanceKey]bool // what was asked for, with any instance
	clients *clients
}

// find asks for the instances of each known interface: one that was offered before
// the gateway came would else wait for its next cyclic offer.
func (imp *importing) find(ctx context.Context) error {
	for _, known := range imp.adapter.cfg.Interfaces.OnSOMEIP() {
		key := someip.InstanceKey{Service: known.SOMEIP.ServiceID, Instance: someip.AnyInstance, Major: uint8(known.Version.Major)}
		if imp.found[key] || known.Version.Major > maxMajor {
			continue
		}
		imp.found[key] = true
		// All are observed already: this only looks for them.
		if err := imp.adapter.network.Observe(ctx, key, func(runtime.Availability) {}); err != nil {
			return fmt.Errorf("someipadapter: %w", err)
		}
	}
	return nil
}

// present is an instance while it is offered.
type present interface {
	bridge.Service
	offered() bridge.Instance
	// end makes its watches return err, and gives up its client.
	end(err error)
}

// follow returns the offers that follow from news.
func (imp *importing) follow(taken map[someip.InstanceKey]news) (list []bridge.Offer) {
	for key, n := range taken {
		if svc := imp.up[key]; svc != nil && n.went != nil {
			delete(imp.up, key)
			svc.end(callError(&runtime.UnavailableError{Key: key, Reason: n.went.Reason, Since: n.went.Since}))
			list = append(list, bridge.Offer{
				Instance: svc.offered(), Reason: string(n.went.Reason), Since: n.went.Since,
			})
		}
		if n.now.Up {
			list = imp.came(list, n.now)
		}
	}
	return list
}

// came adds the offer of an instance that is there and is not imported yet, or
// opaque although its interface is known now. What another gateway exposes is not
// of this network.
func (imp *importing) came(list []bridge.Offer, av runtime.Availability) []bridge.Offer {
	if markedBy(av.Configuration) != "" {
		return list
	}
	known, ok := imp.adapter.cfg.Interfaces.BySOMEIP(av.Key.Service, uint32(av.Key.Major))
	switch before := imp.up[av.Key].(type) {
	case nil:
	case *unknown:
		if !ok {
			return list
		}
		reason, since := "its interface is known now", time.Now()
		before.end(status.Unavailable(reason, since))
		delete(imp.up, av.Key)
		list = append(list, bridge.Offer{Instance: before.instance, Reason: reason, Since: since})
	default:
		return list
	}
	svc, err := imp.open(known, ok, av)
	if err != nil {
		imp.adapter.log.Error("instance not imported", "instance", av.Key, "error", err)
		return list
	}
	imp.up[av.Key] = svc
	return append(list, bridge.Offer{Instance: svc.offered(), Service: svc, Since: av.Since})
}

func (imp *importing) open(known bridge.KnownInterface, typed bool, av runtime.Availability) (present, error) {
	if !typed {
		return imp.adapter.newUnknown(av, imp.clients), nil
	}
	err := imp.adapter.deploy(av.Key, known.Interface)
	if errors.Is(err, runtime.ErrInUse) { // by the client from when it was opaque
		imp.clients.forget(av.Key)
		err = imp.adapter.deploy(av.Key, known.Interface)
	}
	if err != nil {
		return nil, err
	}
	client, err := imp.clients.hold(av.Key)
	if err != nil {
		return nil, err
	}
	svc := imp.adapter.newImported(known, av, client)
	svc.released = func() { imp.clients.release(av.Key) }
	return svc, nil
}

func (imp *importing) end() {
	for _, svc := range imp.up {
		svc.end(callError(runtime.ErrClosed))
	}
	imp.clients.close()
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
