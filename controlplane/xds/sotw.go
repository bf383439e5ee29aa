package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// sotwWatch is the answer that go-control-plane's state-of-the-world server waits
// for. Envoy speaks the delta form; this one is for clients that do not.
type sotwWatch struct {
	req *cachev3.Request
	out chan cachev3.Response
}

// world is what a state-of-the-world client said of whole sets: the version that
// it has, and the one that it refused. Neither is sent to it again.
type world struct {
	has     string
	refused *Nack
}

// everything stands for the whole set, where names of resources stand.
const everything = "*"

// CreateWatch implements cachev3.Cache.
func (c *Cache) CreateWatch(req *cachev3.Request, lib cachev3.Subscription, out chan cachev3.Response) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[req.GetNode().GetId()]
	if st == nil {
		return nil, errStreamGone
	}
	n, t := st.node, req.GetTypeUrl()
	if n.sets[t] == nil {
		return nil, nil // a type that the mesh has nothing of: never answered
	}
	sub := st.subs[t]
	if sub == nil {
		sub = newSubscription()
		st.subs[t] = sub
		sub.held = req.GetVersionInfo() != ""
		sub.world.has = req.GetVersionInfo()
	} else {
		c.answeredWorld(st, sub, req)
	}
	sub.wildcard, sub.names = lib.IsWildcard(), map[string]bool{}
	for name := range lib.SubscribedResources() {
		sub.names[name] = true
	}
	w := &sotwWatch{req: req, out: out}
	sub.sotw = w
	sub.dirty[everything] = true
	c.send(n, t, sub)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sub.sotw == w {
			sub.sotw = nil
		}
	}, nil
}

// answeredWorld takes what a request says about the response under way. A client
// that gets whole sets cannot be asked which resource it refuses.
func (c *Cache) answeredWorld(st *stream, sub *subscription, req *cachev3.Request) {
	f := sub.flight
	if f == nil || f.nonce != req.GetResponseNonce() {
		return
	}
	defer c.tell()
	if detail := req.GetErrorDetail(); detail != nil {
		c.counts.Nacks++
		sub.flight = nil
		sub.world.refused = &Nack{Version: f.world, Reason: clip(detail.GetMessage()), Since: time.Now()}
		c.log.Error("set refused", "node", st.node.name, "type", req.GetTypeUrl(), "reason", sub.world.refused.Reason)
		return
	}
	c.counts.Acks++
	sub.acked(time.Now())
	sub.world = world{has: f.world}
}

// sendWorld answers with the whole set if the client neither has nor refused it.
func (c *Cache) sendWorld(n *node, typeURL string, sub *subscription) {
	if len(sub.dirty) == 0 {
		return
	}
	clear(sub.dirty)
	set := n.sets[typeURL]
	names := slices.Sorted(maps.Keys(set.resources))
	names = slices.DeleteFunc(names, func(name string) bool {
		return !sub.wildcard && !sub.names[name] || set.apart[name] != nil
	})
	version := sha256.New()
	resp := &discoveryv3.DiscoveryResponse{TypeUrl: typeURL}
	for _, name := range names {
		r := set.resources[name]
		_, _ = io.WriteString(version, name+"\x00"+r.Version+"\x00")
		resp.Resources = append(resp.Resources, &anypb.Any{TypeUrl: r.any.GetTypeUrl(), Value: r.any.GetValue()})
	}
	resp.VersionInfo = hex.EncodeToString(version.Sum(nil)[:8])
	switch {
	case resp.VersionInfo == sub.world.has,
		sub.world.refused != nil && resp.VersionInfo == sub.world.refused.Version,
		len(names) == 0 && !sub.wildcard:
		return
	}
	w := sub.sotw
	sub.sotw = nil
	sub.flight = &flight{world: resp.GetVersionInfo()}
	sub.noteSent(set, time.Now())
	c.counts.Responses++
	w.out <- &cachev3.PassthroughResponse{
		Request: w.req, DiscoveryResponse: resp, ReturnedResources: map[string]string{},
	}
}
