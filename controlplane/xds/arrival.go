package xds

import (
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"carisma.dev/gateway/controlplane/registry"
)

// An instance that comes is shown to other nodes only once the proxy of its own
// node has acknowledged it at the ingress: a caller's proxy may be the quicker one,
// and its calls would find nothing there. It is the mirror of a move's end, where
// the ingress goes last. So an owner that comes back takes over from the one that
// stood in for it when it can serve, and not before (CAR-43).

// arrivalPatience is how long an ingress may take where nothing else serves
// meanwhile: then a call may as well try.
const arrivalPatience = 2 * time.Second

// ingressState is how far the ingress of a node is with a service.
type ingressState uint8

const (
	ingressAbsent  ingressState = iota // the node's proxy is not connected
	ingressPending                     // it has not acknowledged all that the service needs, or does not listen yet
	ingressReady
)

// arrivals is what the translator knows of instances by mesh name and node id.
type arrivals struct {
	admitted map[string]map[string]bool
	arriving map[string]map[string]time.Time // until when they are waited for
	// went has what was admitted and went before the control plane settled.
	went map[string]map[string]bool
}

func newArrivals() arrivals {
	return arrivals{
		admitted: map[string]map[string]bool{}, arriving: map[string]map[string]time.Time{}, went: map[string]map[string]bool{},
	}
}

// take looks at a service that changed. What was there before the control plane
// settled is admitted as it is (CAR-50), unless it went since, and so is what has no
// proxy to wait for.
func (a *arrivals) take(name string, s *registry.Service, settled bool, state func(node, service string) ingressState, now time.Time) {
	admitted, arriving := map[string]bool{}, map[string]time.Time{}
	if s != nil {
		for _, inst := range s.Instances {
			id := inst.Node.ID
			until, waits := a.arriving[name][id]
			switch {
			case !inst.Up || inst.Node.Proxy == nil:
			case a.admitted[name][id], !settled && !a.went[name][id]:
				admitted[id] = true
			case waits:
				arriving[id] = until
			default:
				arriving[id] = now.Add(arrivalPatience)
			}
		}
	}
	a.note(name, admitted, settled)
	alone := len(admitted) == 0
	for id := range arriving {
		if alone && state(id, name) == ingressAbsent {
			delete(arriving, id)
			admitted[id] = true
		}
	}
	keep(a.admitted, name, admitted)
	keep(a.arriving, name, arriving)
}

// note remembers what of a service goes while the control plane is not settled.
func (a *arrivals) note(name string, admitted map[string]bool, settled bool) {
	if settled {
		clear(a.went)
		return
	}
	for id := range a.admitted[name] {
		if !admitted[id] {
			if a.went[name] == nil {
				a.went[name] = map[string]bool{}
			}
			a.went[name][id] = true
		}
	}
}

func keep[V any](m map[string]map[string]V, name string, v map[string]V) {
	if len(v) == 0 {
		delete(m, name)
		return
	}
	m[name] = v
}

// admit ends the wait of those that are ready, and where nothing else serves of
// those whose time is over, and returns the names of their services and when to
// look again.
func (a *arrivals) admit(state func(node, service string) ingressState, now time.Time) (changed map[string]bool, next time.Time) {
	changed = map[string]bool{}
	for name, nodes := range a.arriving {
		alone := len(a.admitted[name]) == 0
		for id, until := range nodes {
			is := state(id, name)
			if over := is == ingressAbsent || !now.Before(until); is != ingressReady && (!alone || !over) {
				if alone && (next.IsZero() || until.Before(next)) {
					next = until
				}
				continue
			}
			changed[name] = true
			delete(nodes, id)
			if a.admitted[name] == nil {
				a.admitted[name] = map[string]bool{}
			}
			a.admitted[name][id] = true
		}
		keep(a.arriving, name, nodes)
	}
	return changed, next
}

// seen returns a service as another node sees it: without what is still arriving
// elsewhere. For an owner that is, the one after it goes on.
func (a *arrivals) seen(node string, s *registry.Service) *registry.Service {
	arriving := a.arriving[s.Name]
	if len(arriving) == 0 {
		return s
	}
	seen := *s
	seen.Instances = nil
	vacant := false
	for _, inst := range s.Instances {
		_, waits := arriving[inst.Node.ID]
		switch {
		case waits && inst.Node.ID != node:
			vacant = vacant || !inst.Standby
			continue
		case vacant && inst.Standby && inst.Up:
			owner := *inst
			owner.Standby, vacant = false, false
			inst = &owner
		}
		seen.Instances = append(seen.Instances, inst)
	}
	return &seen
}

// ingress tells how far a node's proxy is with a service at its ingress: with the
// service, and, if it has just begun, with the listener and its routes, and with
// listening.
func (t *Translator) ingress(id, service string) ingressState {
	state, st := t.cache.ingress(id, service)
	if state != ingressReady || t.probe == nil {
		return state
	}
	if n := t.snap.Nodes[id]; n != nil && n.Proxy != nil && !t.cache.listens(st, n.Proxy.Ingress, t.probe) {
		return ingressPending
	}
	return ingressReady
}

// ingress tells what the node's proxy has acknowledged, on which stream.
func (c *Cache) ingress(id, service string) (ingressState, *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := c.nodes[id]; {
	case n == nil || n.stream == nil || n.stream.subs[resourcev3.ClusterType] == nil:
		return ingressAbsent, nil
	case n.took(ingressCluster(service)) && n.has(resourcev3.ListenerType, ingressName) && n.has(resourcev3.RouteType, ingressName):
		return ingressReady, n.stream
	default:
		return ingressPending, n.stream
	}
}

// setArriving says for which services Await has to wait whatever the proxies have.
func (c *Cache) setArriving(services map[string]map[string]time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.arriving)
	for name := range services {
		c.arriving[name] = true
	}
	c.tell()
}

// listen returns a channel that is closed when a proxy answered, and a function
// that ends the interest in it.
func (c *Cache) listen() (<-chan struct{}, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	return c.news, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting--
	}
}
