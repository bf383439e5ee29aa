package xds

import (
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// deltaWatch is the answer that go-control-plane's delta server waits for.
type deltaWatch struct {
	req *cachev3.DeltaRequest
	out chan cachev3.DeltaResponse
}

// CreateDeltaWatch implements cachev3.Cache. Each request of a stream comes here:
// subscriptions, acknowledgements and refusals.
func (c *Cache) CreateDeltaWatch(req *cachev3.DeltaRequest, lib cachev3.Subscription, out chan cachev3.DeltaResponse) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.streams[req.GetNode().GetId()]
	if st == nil {
		return nil, errStreamGone
	}
	n, t := st.node, req.GetTypeUrl()
	set := n.sets[t]
	if set == nil {
		return nil, nil // a type that the mesh has nothing of: never answered
	}
	sub := st.subs[t]
	if sub == nil {
		sub = newSubscription()
		st.subs[t] = sub
		sub.start(lib, req.GetInitialResourceVersions(), set)
		c.tell() // a proxy that has all from its last stream acknowledges nothing
	} else {
		sub.subscribe(lib.IsWildcard(), req.GetResourceNamesSubscribe(), req.GetResourceNamesUnsubscribe(), set)
		c.answered(st, sub, t, req.GetResponseNonce(), req.GetErrorDetail())
	}
	w := &deltaWatch{req: req, out: out}
	sub.delta = w
	c.send(n, t, sub)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sub.delta == w {
			sub.delta = nil
		}
	}, nil
}

// send answers the watch of a subscription if there is anything to say and no
// response is under way.
func (c *Cache) send(n *node, typeURL string, sub *subscription) {
	if sub.flight != nil || !c.ready(n, sub) {
		return
	}
	if sub.sotw != nil {
		c.sendWorld(n, typeURL, sub)
		return
	}
	if sub.delta == nil {
		return
	}
	set := n.sets[typeURL]
	var resp *discoveryv3.DeltaDiscoveryResponse
	for {
		resp = sub.build(typeURL, set, sub.next())
		if resp != nil || !sub.more() {
			break
		}
	}
	if resp == nil {
		return
	}
	w := sub.delta
	sub.delta = nil // armed again by the next request
	sub.noteSent(set, time.Now())
	c.counts.Responses++
	// The channel has room for two responses of each type, and this is the only one.
	w.out <- &cachev3.DeltaPassthroughResponse{
		DeltaRequest: w.req, DeltaDiscoveryResponse: resp, NextVersionMap: map[string]string{},
	}
}

func (s *subscription) noteSent(set *set, now time.Time) {
	s.answered = true
	s.sentVersion, s.sentAt = versionName(set.version), now
}
