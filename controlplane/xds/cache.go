package xds

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// Cache is the resources of all nodes and the state of all streams. It implements
// go-control-plane's cache. It is safe for concurrent use; its lock is held for
// work in step with a change and never while something is sent.
type Cache struct {
	log *slog.Logger

	mu      sync.Mutex
	settled bool
	nodes   map[string]*node   // by node id
	streams map[string]*stream // by stream key
	counts  Counts
	applied uint64 // version of the registry
	waiting int    // callers of Await and listen
	// arriving has the services with an instance that others do not see yet.
	arriving map[string]bool
	news     chan struct{} // closed, while some wait, when they should look again
}

var _ cachev3.Cache = (*Cache)(nil)

// Counts are what happened since the start.
type Counts struct {
	Responses      uint64
	Acks           uint64
	Nacks          uint64
	SetApart       uint64
	RefusedStreams uint64
	Streams        uint64
}

// node is what one node's proxy should have.
type node struct {
	id, name string
	// synced: the node's agent gave its digest, so that what is here is all there
	// is. Before it no watch is answered (CAR-50).
	synced bool
	sets   map[string]*set // by type
	stream *stream         // the one proxy of the node (CAR-3)
	// released is closed when the stream is let go.
	released chan struct{}
}

// set is the resources of one type of one node.
type set struct {
	resources map[string]*Resource
	// apart has the resources that the proxy refused, each in the version that it
	// refused. They are not sent again until they change, by no stream.
	apart map[string]*Nack
	// version of the registry that the resources come from.
	version uint64
}

// NewCache returns an empty cache.
func NewCache(log *slog.Logger) *Cache {
	return &Cache{log: log, nodes: map[string]*node{}, streams: map[string]*stream{}, arriving: map[string]bool{}, news: make(chan struct{})}
}

// Update is the change of one node.
type Update struct {
	Node   string
	Set    []*Resource
	Remove []Key
}

// Key names a resource.
type Key struct{ Type, Name string }

// node returns the state of a node, which a stream may ask for before the registry
// has told of it.
func (c *Cache) node(id string) *node {
	n := c.nodes[id]
	if n == nil {
		n = &node{id: id, sets: map[string]*set{}}
		for _, t := range types {
			n.sets[t] = &set{resources: map[string]*Resource{}, apart: map[string]*Nack{}}
		}
		c.nodes[id] = n
	}
	return n
}

// SetNode says what is known of a node.
func (c *Cache) SetNode(id, name string, synced bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(id)
	n.name, n.synced = name, synced
	c.flush(n)
}

// RemoveNode forgets a node and ends its stream with err.
func (c *Cache) RemoveNode(id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[id]; n != nil {
		if n.stream != nil {
			n.stream.cancel(err)
		}
		delete(c.nodes, id)
	}
}

// Settle says that nothing is missing any more just because it was not heard yet.
func (c *Cache) Settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settled {
		return
	}
	c.settled = true
	for _, n := range c.nodes {
		c.flush(n)
	}
}

// Apply changes resources, as of a version of the registry, and sends what streams
// need to know. A resource that is what it was touches nobody (CAR-17).
func (c *Cache) Apply(version uint64, updates []Update) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied = max(c.applied, version)
	defer c.tell()
	for _, u := range updates {
		n := c.node(u.Node)
		for _, r := range u.Set {
			n.put(r, version)
		}
		for _, k := range u.Remove {
			n.remove(k, version)
		}
		c.flush(n)
	}
}

func (n *node) put(r *Resource, version uint64) {
	s := n.sets[r.Type]
	if old := s.resources[r.Name]; old != nil && old.Version == r.Version {
		return
	}
	s.resources[r.Name] = r
	delete(s.apart, r.Name) // another version gets another chance
	s.version = version
	n.touch(r.Type, r.Name)
}

func (n *node) remove(k Key, version uint64) {
	s := n.sets[k.Type]
	if s.resources[k.Name] == nil {
		return
	}
	delete(s.resources, k.Name)
	delete(s.apart, k.Name)
	s.version = version
	n.touch(k.Type, k.Name)
}

// touch has the node's stream look at a name again.
func (n *node) touch(typeURL, name string) {
	if n.stream == nil {
		return
	}
	if sub := n.stream.subs[typeURL]; sub != nil && sub.wants(name) {
		sub.dirty[name] = true
	}
}

// flush sends what the node's stream may be sent now.
func (c *Cache) flush(n *node) {
	if n.stream == nil {
		return
	}
	for _, t := range types {
		if sub := n.stream.subs[t]; sub != nil {
			c.send(n, t, sub)
		}
	}
}

// ready reports whether a subscription may be answered. One that holds resources
// from earlier waits until nothing just seems gone (CAR-50).
func (c *Cache) ready(n *node, sub *subscription) bool {
	return n.synced && (c.settled || !sub.held)
}

var errNoFetch = errors.New("xds: only streams are served")

// Fetch implements cachev3.Cache. Polling is not served.
func (c *Cache) Fetch(context.Context, *cachev3.Request) (cachev3.Response, error) {
	return nil, errNoFetch
}

// Counts returns the counters.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}
