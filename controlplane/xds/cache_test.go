package xds

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/view"
	"carisma.dev/gateway/mesh/api"
)

var theNode = api.Identity{ID: nodeID, Epoch: 1}

func cluster(tb testing.TB, name string) *Resource {
	tb.Helper()
	c, err := edsCluster(name, nil)
	require.NoError(tb, err)
	r, err := NewResource(cds, c)
	require.NoError(tb, err)
	return r
}

// variant is a cluster of the same name with another content.
func variant(tb testing.TB, name string, n int) *Resource {
	tb.Helper()
	c, err := edsCluster(name, nil)
	require.NoError(tb, err)
	c.AltStatName = fmt.Sprint(n)
	r, err := NewResource(cds, c)
	require.NoError(tb, err)
	return r
}

func endpoints(tb testing.TB, name string, ports ...uint16) *Resource {
	tb.Helper()
	var all []view.Endpoint
	for _, port := range ports {
		all = append(all, view.Endpoint{Node: nodeID, Address: registry.Address{
			Addr: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port),
		}})
	}
	r, err := newAssignment(name, all)
	require.NoError(tb, err)
	return r
}

func (r *rig) apply(rs ...*Resource) {
	r.cache.Apply(7, []Update{{Node: nodeID, Set: rs}})
}

func (r *rig) remove(keys ...Key) {
	r.cache.Apply(8, []Update{{Node: nodeID, Remove: keys}})
}

func (r *rig) ready() {
	r.cache.SetNode(nodeID, "rear", true)
	r.cache.Settle()
}

func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newRig(t)) })
}

// CAR-14, 17: a proxy gets what there is, then what changes, and nothing else.
func TestChanges(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(cluster(t, "left"), cluster(t, "right"), endpoints(t, "left", 1), endpoints(t, "right", 1))
		p := r.connect(theNode, nil)
		p.ask(cds)
		require.Equal(t, []string{"left right"}, p.news())
		p.ask(eds, "left", "right")
		require.Equal(t, []string{"left right"}, p.news())

		r.apply(endpoints(t, "left", 2))
		require.Equal(t, []string{"left"}, p.news())
		r.apply(cluster(t, "left"), endpoints(t, "left", 2))
		require.Empty(t, p.news())
		r.cache.Apply(9, []Update{{Node: "another", Set: []*Resource{endpoints(t, "left", 3)}}})
		require.Empty(t, p.news())

		// CAR-50: endpoints go by an empty assignment; that the resource goes is not told.
		r.apply(endpoints(t, "left"))
		require.Equal(t, []string{"left"}, p.news())
		r.remove(Key{cds, "left"}, Key{eds, "left"})
		require.Equal(t, []string{"-left"}, p.news())
		p.unsubscribe(eds, "left")
		require.Empty(t, p.news())
		require.Equal(t, []string{"right"}, p.holds(cds))
	})
}

// CAR-49: nothing to say is an answer too, once and to a wildcard only.
func TestEmpty(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		p := r.connect(theNode, nil)
		p.ask(cds)
		p.ask(eds, "left")
		require.Equal(t, []string{""}, p.news())
		r.apply(endpoints(t, "left", 1))
		require.Equal(t, []string{"left"}, p.news())
	})
}

// CAR-50: nothing before the digest of the node.
func TestSilenceBeforeDigest(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.apply(cluster(t, "left"))
		r.cache.Settle()
		p := r.connect(theNode, nil)
		p.ask(cds)
		require.Empty(t, p.news())
		r.cache.SetNode(nodeID, "rear", false)
		require.Empty(t, p.news())
		r.cache.SetNode(nodeID, "rear", true)
		require.Equal(t, []string{"left"}, p.news())
	})
}

// CAR-50: a proxy that holds resources is told of none that it is gone before all
// nodes had the time to speak, and then only of differences. A proxy that holds
// none is served at once.
func TestHeldResources(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		left, right := cluster(t, "left"), cluster(t, "right")
		r.cache.SetNode(nodeID, "rear", true)
		r.apply(left, variant(t, "changed", 1))
		p := r.connect(theNode, map[string]map[string]string{cds: {
			"left": left.Version, "right": right.Version, "changed": "0", "gone": "1",
		}})
		p.ask(cds)
		p.ask(lds)
		require.Equal(t, []string{""}, p.news(), "the listeners only")
		r.apply(right)
		require.Empty(t, p.news())
		r.cache.Settle()
		require.Equal(t, []string{"changed -gone"}, p.news())

		// A reconnect with everything is no change at all.
		p.end()
		<-p.ended
		again := r.connect(theNode, p.held)
		again.ask(cds)
		require.Empty(t, again.news())
	})
}

// While a response is under way changes merge, and the last state goes out.
func TestMerge(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "left", 1), endpoints(t, "right", 1))
		p := r.connect(theNode, nil)
		p.ask(eds, "left", "right")
		require.Equal(t, []string{"left right"}, p.news())
		p.hush()
		for port := range uint16(100) {
			r.apply(endpoints(t, "left", port+2))
		}
		require.Equal(t, []string{"left"}, p.news())
		r.apply(endpoints(t, "right", 2))
		p.speak()
		require.Equal(t, []string{"left right"}, p.news())
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Equal(t, endpoints(t, "left", 101).Version, p.held[eds]["left"])
	})
}

// A name that is subscribed again is sent again: Envoy warms a cluster anew.
func TestResubscribe(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "left", 1))
		p := r.connect(theNode, nil)
		p.ask(eds, "left")
		require.Equal(t, []string{"left"}, p.news())
		p.ask(eds, "left")
		require.Equal(t, []string{"left"}, p.news())
		p.unsubscribe(eds, "left")
		require.Empty(t, p.news())
		r.apply(endpoints(t, "left", 2))
		require.Empty(t, p.news())
		p.ask(eds, "left")
		require.Equal(t, []string{"left"}, p.news())
	})
}

// A refused response is halved until the bad resource is alone; it is set apart
// and all others arrive. It stays apart for the next stream, until it changes.
func TestNack(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		bad := variant(t, "bad", 1)
		r.apply(bad)
		for i := range 7 {
			r.apply(cluster(t, fmt.Sprint("c", i)))
		}
		p := r.connect(theNode, nil)
		p.refuse(bad)
		p.ask(cds)
		require.Equal(t, []string{
			"bad c0 c1 c2 c3 c4 c5 c6", "bad c0 c1 c2", "bad c0", "bad", "c0", "c1 c2", "c3 c4 c5 c6",
		}, p.news())
		require.Len(t, p.holds(cds), 7)
		nacks := r.cache.Proxies()[0].Types[0].Nacks
		require.Len(t, nacks, 1)
		require.Equal(t, "bad bad", nacks["bad"].Reason)
		require.Equal(t, bad.Version, nacks["bad"].Version)
		require.WithinDuration(t, time.Now(), nacks["bad"].Since, time.Second)

		r.apply(bad, cluster(t, "later"))
		require.Equal(t, []string{"later"}, p.news())

		p.end()
		<-p.ended
		again := r.connect(theNode, nil)
		again.refuse(bad)
		again.ask(cds)
		require.Equal(t, []string{"c0 c1 c2 c3 c4 c5 c6 later"}, again.news())

		r.apply(variant(t, "bad", 2))
		require.Equal(t, []string{"bad"}, again.news())
		require.Empty(t, r.cache.Proxies()[0].Types[0].Nacks)
		require.Equal(t, uint64(1), r.cache.Counts().SetApart)
	})
}

// A change that is refused leaves the proxy with what it had; removals of the same
// response are not lost.
func TestNackOfChange(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(variant(t, "a", 1), cluster(t, "b"))
		p := r.connect(theNode, nil)
		p.ask(cds)
		require.Equal(t, []string{"a b"}, p.news())
		bad := variant(t, "a", 2)
		p.refuse(bad)
		r.cache.Apply(9, []Update{{Node: nodeID, Set: []*Resource{bad}, Remove: []Key{{cds, "b"}}}})
		require.Equal(t, []string{"a -b", "a", "-b"}, p.news())
		require.Equal(t, []string{"a"}, p.holds(cds))
		r.apply(variant(t, "a", 1)) // back to what the proxy has
		require.Empty(t, p.news())
	})
}

func TestAckTracking(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "left", 1))
		p := r.connect(theNode, nil)
		p.ask(eds, "left")
		p.news()
		status := func() TypeStatus { return r.cache.Proxies()[0].Types[1] }
		require.Equal(t, "7", status().Sent)
		require.Equal(t, "7", status().Acked)
		time.Sleep(time.Second)
		p.hush()
		r.cache.Apply(12, []Update{{Node: nodeID, Set: []*Resource{endpoints(t, "left", 2)}}})
		p.news()
		require.Equal(t, "12", status().Sent)
		require.Equal(t, "7", status().Acked)
		require.Equal(t, time.Second, status().SentAt.Sub(status().AckedAt))
	})
}

// CAR-3, 11, 13: who may be served.
func TestStreams(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		first := r.connect(theNode, nil)
		first.ask(cds)
		require.NoError(t, first.error())

		second := r.connect(theNode, nil)
		second.ask(cds)
		time.Sleep(takeOver)
		require.Equal(t, codes.AlreadyExists, status.Code(second.error()))
		require.NoError(t, first.error())
		require.Equal(t, uint64(1), r.cache.Counts().RefusedStreams)

		// One that comes a moment before the first is seen to end gets its place.
		third := r.connect(theNode, nil)
		third.ask(cds)
		require.NoError(t, third.error())
		first.end()
		require.NoError(t, third.error())
		require.Equal(t, []string{""}, third.news())

		// After a resume the older stream is a relic.
		fourth := r.connect(api.Identity{ID: nodeID, Epoch: 2}, nil)
		fourth.ask(cds)
		require.Equal(t, codes.Aborted, status.Code(third.error()))
		require.Equal(t, []string{""}, fourth.news())

		// So it is for a node that another registration superseded.
		r.cache.RemoveNode(nodeID, status.Error(codes.Aborted, "superseded"))
		require.Equal(t, codes.Aborted, status.Code(fourth.error()))
	})
}

func TestStreamsOfOthers(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		nobody := r.connect(api.Identity{}, nil)
		require.ErrorContains(t, nobody.error(), errCheck.Error())
		other := r.connect(theNode, nil)
		other.id = "another"
		other.ask(cds)
		require.Equal(t, codes.PermissionDenied, status.Code(other.error()))
		require.Equal(t, uint64(1), r.cache.Counts().RefusedStreams)
	})
}

func TestUnknownType(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		p := r.connect(theNode, nil)
		p.ask("type.googleapis.com/envoy.service.runtime.v3.Runtime")
		p.ask(cds)
		require.Equal(t, []string{""}, p.news())
	})
}

func TestFetch(t *testing.T) {
	t.Parallel()
	_, err := NewCache(nil).Fetch(t.Context(), nil)
	require.Error(t, err)
}
