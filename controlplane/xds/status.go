package xds

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Proxy is the state of one node's proxy.
type Proxy struct {
	Node, Name string
	Peer       string    // "" while it is not connected
	Connected  time.Time // of the present stream
	Types      []TypeStatus
}

// TypeStatus is what a proxy was sent of a type, and what it took.
type TypeStatus struct {
	Type      string
	Resources int
	// Versions are those of the registry, in decimal; "" for never.
	Sent, Acked     string
	SentAt, AckedAt time.Time
	Nacks           map[string]Nack // resources that are set apart
}

// Proxies returns the state of all proxies, sorted by the names of their nodes.
func (c *Cache) Proxies() []Proxy {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Proxy
	for _, n := range c.nodes {
		p := Proxy{Node: n.id, Name: n.name}
		if n.stream != nil {
			p.Peer, p.Connected = n.stream.peer, n.stream.connected
		}
		for _, t := range types {
			p.Types = append(p.Types, n.status(t))
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Proxy) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Node, b.Node))
	})
	return all
}

func (n *node) status(typeURL string) TypeStatus {
	set := n.sets[typeURL]
	t := TypeStatus{Type: typeURL, Resources: len(set.resources), Nacks: map[string]Nack{}}
	for name, nack := range maps.All(set.apart) {
		t.Nacks[name] = *nack
	}
	if n.stream == nil {
		return t
	}
	if sub := n.stream.subs[typeURL]; sub != nil {
		t.Sent, t.SentAt, t.Acked, t.AckedAt = sub.sentVersion, sub.sentAt, sub.ackedVersion, sub.ackedAt
		if sub.world.refused != nil {
			t.Nacks[everything] = *sub.world.refused
		}
	}
	return t
}

func versionName(v uint64) string { return strconv.FormatUint(v, 10) }
