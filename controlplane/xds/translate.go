package xds

import (
	"context"
	"log/slog"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/view"
)

// Translator keeps a Cache in step with a Registry: CAR-14.
type Translator struct {
	cache *Cache
	log   *slog.Logger
	// clusters of each mesh service, which all nodes share.
	clusters map[string]*serviceClusters
	routes   *Resource // of every egress
	nodes    map[string]bool
	arrivals arrivals
	snap     *registry.Snapshot // the last
	probe    registry.Prober
}

// NewTranslator returns a translator that Run runs. By the probe it learns when the
// ingress of a proxy that has just begun listens; nil: at once.
func NewTranslator(cache *Cache, probe registry.Prober, log *slog.Logger) *Translator {
	return &Translator{
		cache: cache, probe: probe, log: log, clusters: map[string]*serviceClusters{}, nodes: map[string]bool{}, arrivals: newArrivals(),
	}
}

// Run translates the registry and each change of it until ctx ends.
func (t *Translator) Run(ctx context.Context, r *registry.Registry) {
	snap, sub := r.Subscribe()
	defer sub.Close()
	t.Translate(snap, everythingOf(snap))
	for {
		changes, ok := t.next(ctx, sub)
		if !ok {
			return
		}
		if changes.Services == nil {
			changes, snap = sub.Take()
		}
		t.Translate(snap, changes)
	}
}

// next waits until the registry changed, or an instance arrived. Only then it
// returns changes by itself.
func (t *Translator) next(ctx context.Context, sub *registry.Subscription) (changes registry.Changes, ok bool) {
	for {
		news, unlisten := t.cache.listen()
		arrived, next := t.arrivals.admit(t.ingress, time.Now())
		if len(arrived) > 0 {
			unlisten()
			return registry.Changes{Services: arrived}, true
		}
		over := time.NewTimer(time.Until(next))
		if next.IsZero() {
			over.Stop()
		}
		if len(t.arrivals.arriving) == 0 {
			news = nil
		}
		more := false
		select {
		case <-ctx.Done():
		case <-sub.Ready():
			ok = true
		case <-news:
			more = true
		case <-over.C:
			more = true
		}
		over.Stop()
		unlisten()
		if !more {
			return registry.Changes{}, ok
		}
	}
}

func everythingOf(snap *registry.Snapshot) registry.Changes {
	c := registry.Changes{Nodes: map[string]bool{}, Services: map[string]bool{}, Interfaces: map[string]bool{}}
	for id := range snap.Nodes {
		c.Nodes[id] = true
	}
	for name := range snap.Services {
		c.Services[name] = true
	}
	for name := range snap.Interfaces {
		c.Interfaces[name] = true
	}
	return c
}

// Translate brings what changed to the cache. It costs the changed services times
// the nodes.
func (t *Translator) Translate(snap *registry.Snapshot, changes registry.Changes) {
	settled := t.snap != nil && t.snap.Settled
	t.snap = snap
	if t.routes == nil || len(changes.Interfaces) > 0 {
		if r, err := newEgressRoutes(snap.Interfaces); t.ok(err) {
			t.routes = r
		}
	}
	for name := range changes.Services {
		// What comes with the news that all is there was there all the time.
		t.arrivals.take(name, snap.Services[name], settled, t.ingress, time.Now())
	}
	t.cache.setArriving(t.arrivals.arriving)
	updates := make([]Update, 0, len(snap.Nodes))
	for id, n := range snap.Nodes {
		if n.Proxy == nil {
			continue // CAR-34: no proxy, no configuration
		}
		u := Update{Node: id}
		services := changes.Services
		if changes.Nodes[id] {
			t.node(&u, n)
		}
		if !t.nodes[id] {
			services = everythingOf(snap).Services
			t.nodes[id] = true
		}
		if t.routes != nil {
			u.Set = append(u.Set, t.routes)
		}
		for name := range services {
			t.service(&u, name, snap.Services[name])
		}
		updates = append(updates, u)
	}
	t.cache.Apply(snap.Version, updates)
	t.heads(snap, changes)
	for name := range changes.Services {
		if snap.Services[name] == nil {
			delete(t.clusters, name)
		}
	}
}

// heads tells the cache of nodes, once it has what they need.
func (t *Translator) heads(snap *registry.Snapshot, changes registry.Changes) {
	for id := range changes.Nodes {
		if n := snap.Nodes[id]; n != nil {
			t.cache.SetNode(id, n.Name, n.Synced)
			continue
		}
		delete(t.nodes, id)
		t.cache.RemoveNode(id, status.Error(codes.Aborted, "another registration superseded this node"))
	}
	if snap.Settled {
		t.cache.Settle()
	}
}

// node adds what a node has whatever the services are: a valid configuration that
// routes nowhere (CAR-49).
func (t *Translator) node(u *Update, n *registry.Node) {
	if listeners, err := newListeners(n.Proxy); t.ok(err) {
		u.Set = append(u.Set, listeners...)
	}
	if gateway, err := newGatewayCluster(n.Proxy.GatewaySocket); t.ok(err) {
		u.Set = append(u.Set, gateway)
	}
	if routes, err := newIngressRoutes(); t.ok(err) {
		u.Set = append(u.Set, routes)
	}
}

// service adds one mesh service as the node sees it. Its clusters are there for as
// long as it is registered; whether it is local, remote or gone is in the
// endpoints alone.
func (t *Translator) service(u *Update, name string, s *registry.Service) {
	if s == nil {
		for _, cluster := range []string{name, localCluster(name), remoteCluster(name), ingressCluster(name)} {
			u.Remove = append(u.Remove, Key{resourcev3.ClusterType, cluster}, Key{resourcev3.EndpointType, cluster})
		}
		return
	}
	clusters := t.clusters[name]
	if clusters == nil {
		c, err := newServiceClusters(name)
		if !t.ok(err) {
			return
		}
		clusters = c
		t.clusters[name] = c
	}
	route := view.RouteOf(u.Node, t.arrivals.seen(u.Node, s))
	var near, far []view.Endpoint
	switch route.Class {
	case view.Local:
		near = route.Endpoints
	case view.Remote:
		far = route.Endpoints
	case view.Gone:
	}
	u.Set = append(u.Set, clusters.egress[:]...)
	t.endpoints(u, localCluster(name), near)
	t.endpoints(u, remoteCluster(name), far)
	if view.Has(u.Node, s) {
		u.Set = append(u.Set, clusters.in)
		t.endpoints(u, ingressCluster(name), view.LocalOf(u.Node, s))
	} else {
		u.Remove = append(u.Remove,
			Key{resourcev3.ClusterType, ingressCluster(name)}, Key{resourcev3.EndpointType, ingressCluster(name)})
	}
}

func (t *Translator) endpoints(u *Update, cluster string, endpoints []view.Endpoint) {
	if a, err := newAssignment(cluster, endpoints); t.ok(err) {
		u.Set = append(u.Set, a)
	}
}

// ok logs a resource that could not be made. The registry checks what nodes say, so
// none is expected; one that is left out harms no other.
func (t *Translator) ok(err error) bool {
	if err != nil {
		t.log.Error("resource left out", "error", err)
	}
	return err == nil
}
