package gateway

import (
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/mesh/config"
)

// intake stands between the adapter of a network and the table: instances that the
// node file declares interchangeable become one (CAR-52), and those that a command
// withdrew stay away. One goroutine uses it.
type intake struct {
	network   *config.Network
	pools     map[poolKey]*bridge.Pool
	live      map[string]bridge.Offer // by mesh name, what the table has
	withdrawn map[string]bool
}

// withdrawal takes an instance away from the table for as long as the gateway runs.
type withdrawal struct{ name, reason string }

type poolKey struct{ iface, name string }

func newIntake(n *config.Network) *intake {
	return &intake{
		network: n, pools: map[poolKey]*bridge.Pool{},
		live: map[string]bridge.Offer{}, withdrawn: map[string]bool{},
	}
}

// withdraw returns the offer that tells the table; false if it has no such instance.
func (in *intake) withdraw(w withdrawal) (bridge.Offer, bool) {
	o, ok := in.live[w.name]
	in.withdrawn[w.name] = true
	delete(in.live, w.name)
	o.Service, o.Reason, o.Since = nil, w.reason, time.Now()
	return o, ok
}

// take returns the offer that the table gets in place of one of the adapter; false
// if it gets none.
func (in *intake) take(o bridge.Offer) (bridge.Offer, bool) {
	o, told := in.gather(o)
	name := o.MeshName()
	switch {
	case !told || in.withdrawn[name]:
		return o, false
	case o.Service == nil:
		delete(in.live, name)
	default:
		in.live[name] = o
	}
	return o, true
}

// gather makes one offer of those of a set of replicas.
func (in *intake) gather(o bridge.Offer) (bridge.Offer, bool) {
	name, ok := in.network.ReplicaName(o.Interface.FullName(), o.Name)
	if !ok {
		return o, true
	}
	k := poolKey{o.Interface.FullName(), name}
	pool := in.pools[k]
	if pool == nil {
		pool = bridge.NewPool(o.Interface)
		in.pools[k] = pool
	}
	member := o.Name
	o.Name = name
	if o.Service == nil {
		if o.Since.IsZero() {
			o.Since = time.Now()
		}
		return o, pool.Remove(member, o.Reason, o.Since) == 0
	}
	first := pool.Add(member, o.Service) == 1
	o.Service = pool
	return o, first
}
