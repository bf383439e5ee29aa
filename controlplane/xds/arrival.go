package xds

import (
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"carisma.dev/gateway/controlplane/registry"
)

// An instance that comes is shown to other nodes only once the proxy of its own
// node has acknowledged it at the ingress: a caller's proxy may be the quicker one,
// and its calls would find nothing there. It is the mirror of a move's end, where
// the ingress goes last.

// arrivalPatience is how long an ingress may take. A proxy that does not answer
// delays nobody for longer.
const arrivalPatience = 500 * time.Millisecond

// arrivals is what the translator knows of instances by mesh name and node id.
type arrivals struct {
	admitted map[string]map[string]bool
	arriving map[string]map[string]time.Time // until when they are waited for
}

func newArrivals() arrivals {
	return arrivals{admitted: map[string]map[string]bool{}, arriving: map[string]map[string]time.Time{}}
}

// take looks at a service that changed. What was there before the control plane
// settled is admitted as it is (CAR-50), and so is what has no proxy to wait for.
func (a *arrivals) take(name string, s *registry.Service, settled bool, connected func(node string) bool, now time.Time) {
	admitted, arriving := map[string]bool{}, map[string]time.Time{}
	if s != nil {
		for _, inst := range s.Instances {
			id := inst.Node.ID
			until, waits := a.arriving[name][id]
			switch {
			case !inst.Up || inst.Node.Proxy == nil:
			case a.admitted[name][id], !settled, !connected(id):
				admitted[id] = true
			case waits:
				arriving[id] = until
			default:
				arriving[id] = now.Add(arrivalPatience)
			}
		}
	}
	keep(a.admitted, name, admitted)
	keep(a.arriving, name, arriving)
}

func keep[V any](m map[string]map[string]V, name string, v map[string]V) {
	if len(v) == 0 {
		delete(m, name)
		return
	}
	m[name] = v
}

// admit ends the wait of those that are ready or whose time is over, and returns
// the names of their services and when to look again.
func (a *arrivals) admit(ready func(node, service string) bool, now time.Time) (changed map[string]bool, next time.Time) {
	changed = map[string]bool{}
	for name, nodes := range a.arriving {
		for id, until := range nodes {
			if !ready(id, name) && now.Before(until) {
				if next.IsZero() || until.Before(next) {
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

// connected reports whether the node has a proxy that can be waited for.
func (c *Cache) connected(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[id]
	return n != nil && n.stream != nil && n.stream.subs[resourcev3.ClusterType] != nil
}

// atIngress reports whether the node's proxy has acknowledged a service at its
// ingress, or cannot be waited for any more.
func (c *Cache) atIngress(id, service string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[id]
	return n == nil || n.stream == nil || n.took(ingressCluster(service))
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
