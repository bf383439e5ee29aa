package xds

import (
	"context"
	"slices"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// Await waits until every connected proxy has acknowledged what a version of the
// registry, or a newer one, says of a mesh service, or until ctx ends. A resource
// that a proxy refused counts as answered. It returns the names of the nodes whose
// proxies are as far, and of those that are late.
func (c *Cache) Await(ctx context.Context, version uint64, service string) (acknowledged, late []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting++
	defer func() { c.waiting-- }()
	for {
		acknowledged, late = c.answeredOf(version, service)
		done := len(late) == 0 && c.applied >= version && !c.arriving[service]
		if done || ctx.Err() != nil {
			return acknowledged, late
		}
		news := c.news
		c.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
		}
		c.mu.Lock()
	}
}

// tell has those who wait look again.
func (c *Cache) tell() {
	if c.waiting > 0 {
		close(c.news)
		c.news = make(chan struct{})
	}
}

func (c *Cache) answeredOf(version uint64, service string) (acknowledged, late []string) {
	for _, n := range c.nodes {
		switch {
		case n.stream == nil:
		case c.applied >= version && n.took(clustersOf(service)...):
			acknowledged = append(acknowledged, n.name)
		default:
			late = append(late, n.name)
		}
	}
	slices.Sort(acknowledged)
	slices.Sort(late)
	return acknowledged, late
}

func clustersOf(service string) []string {
	return []string{service, localCluster(service), remoteCluster(service), ingressCluster(service)}
}

// took reports whether the node's proxy has what there is of clusters.
func (n *node) took(names ...string) bool {
	return n.has(resourcev3.ClusterType, names...) && n.has(resourcev3.EndpointType, names...)
}

// has reports whether the node's proxy has what there is under names of a type.
func (n *node) has(typeURL string, names ...string) bool {
	set, sub := n.sets[typeURL], n.stream.subs[typeURL]
	for _, name := range names {
		r := set.resources[name]
		switch {
		case r == nil && typeURL == resourcev3.EndpointType:
			// Goes with its cluster.
		case sub == nil:
			if r != nil { // it has not asked yet
				return false
			}
		case sub.sotw != nil || sub.world.has != "":
			if sub.flight != nil || len(sub.dirty) > 0 {
				return false
			}
		case !sub.agrees(name, r, set.apart[name] != nil):
			return false
		}
	}
	return true
}

// agrees reports whether the proxy acknowledged a resource, or its absence.
func (s *subscription) agrees(name string, r *Resource, apart bool) bool {
	if s.flight != nil && slices.Contains(s.flight.names, name) {
		return false
	}
	if r == nil {
		return s.known[name] == ""
	}
	return apart || s.known[name] == r.Version
}
