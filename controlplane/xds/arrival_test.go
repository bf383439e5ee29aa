package xds

import (
	"log/slog"
	"testing"
	"time"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
)

// What comes is shown to other nodes once its own ingress has it, or after a while.
func TestArrivals(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	a := newArrivals()
	connected := func(id string) bool { return id != "unconnected" }
	took := map[string]bool{}
	ready := func(id, _ string) bool { return took[id] }
	instance := func(id string) *registry.Instance {
		return &registry.Instance{Up: true, Node: &registry.Node{Node: store.Node{ID: id, Proxy: &store.Proxy{}}}}
	}
	s := func(ids ...string) *registry.Service {
		s := &registry.Service{Name: "s"}
		for _, id := range ids {
			s.Instances = append(s.Instances, instance(id))
		}
		return s
	}
	sees := func(node string, s *registry.Service) (ids []string) {
		for _, inst := range a.seen(node, s).Instances {
			ids = append(ids, inst.Node.ID)
		}
		return ids
	}

	// CAR-50: what is there at the start, or has no proxy to wait for, counts at once.
	a.take("s", s("first"), false, connected, now)
	both := s("first", "unconnected")
	a.take("s", both, true, connected, now)
	require.Equal(t, []string{"first", "unconnected"}, sees("x", both))

	three := s("first", "unconnected", "new")
	a.take("s", three, true, connected, now)
	require.Equal(t, []string{"first", "unconnected"}, sees("x", three))
	require.Equal(t, []string{"first", "unconnected", "new"}, sees("new", three), "its own node sees it")
	changed, next := a.admit(ready, now)
	require.Empty(t, changed)
	require.Equal(t, now.Add(arrivalPatience), next)
	took["new"] = true
	changed, next = a.admit(ready, now)
	require.Equal(t, map[string]bool{"s": true}, changed)
	require.Zero(t, next)
	require.Equal(t, []string{"first", "unconnected", "new"}, sees("x", three))
	a.take("s", three, true, connected, now)
	require.Empty(t, a.arriving, "who is admitted stays so")

	// Who went arrives anew; a slow ingress delays for a while only.
	down := s("first", "new")
	down.Instances[1].Up = false
	a.take("s", down, true, connected, now)
	took["new"] = false
	again := s("first", "new")
	a.take("s", again, true, connected, now)
	require.Equal(t, []string{"first"}, sees("x", again))
	a.take("s", again, true, connected, now.Add(time.Second))
	changed, _ = a.admit(ready, now.Add(arrivalPatience-1))
	require.Empty(t, changed)
	changed, _ = a.admit(ready, now.Add(arrivalPatience))
	require.NotEmpty(t, changed)
	require.Equal(t, []string{"first", "new"}, sees("x", again))

	a.take("s", nil, true, connected, now)
	require.Empty(t, a.admitted)

	// While an owner that comes back arrives, the one that stood in for it goes on.
	a.take("s", s("second"), false, connected, now)
	back := s("owner", "second", "third")
	back.Instances[1].Standby, back.Instances[2].Standby = true, true
	a.take("s", back, true, connected, now)
	require.Equal(t, []string{"second"}, sees("x", back))
	require.False(t, a.seen("x", back).Instances[0].Standby)
	require.True(t, back.Instances[1].Standby, "the snapshot is as it was")
	require.True(t, a.seen("owner", back).Instances[1].Standby)
}

// CAR-50: the digest that settles a restarted control plane brings nothing new.
func TestNothingArrivesWithTheLastDigest(t *testing.T) {
	t.Parallel()
	c := NewCache(slog.New(slog.DiscardHandler))
	tr := NewTranslator(c, c.log)
	node := snapNode("a", 1)
	early := newSnapshot(nil, node)
	early.Settled = false
	tr.Translate(early, everythingOf(early))
	c.nodes["a"].stream = &stream{subs: map[string]*subscription{resourcev3.ClusterType: newSubscription()}}
	settled := newSnapshot([]*registry.Service{snapService("s", node)}, node)
	tr.Translate(settled, everythingOf(settled))
	require.Empty(t, tr.arrivals.arriving)

	later := newSnapshot([]*registry.Service{snapService("s", node), snapService("t", node)}, node)
	tr.Translate(later, everythingOf(later))
	require.Contains(t, tr.arrivals.arriving, "t")
	c.nodes["a"].stream = nil
}
