package gateway

import (
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/mesh/config"
)

// intake stands between the adapter of a network and the table: instances that the
// node file declares interchangeable become one (CAR-52). One goroutine uses it.
type intake struct {
	network *config.Network
	pools   map[poolKey]*bridge.Pool
}

type poolKey struct{ iface, name string }

func newIntake(n *config.Network) *intake {
	return &intake{network: n, pools: map[poolKey]*bridge.Pool{}}
}

// take returns the offer that the table gets in place of one of the adapter; false
// if it gets none.
func (in *intake) take(o bridge.Offer) (bridge.Offer, bool) {
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
