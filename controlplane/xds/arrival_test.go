package xds

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
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
	took, absent := map[string]bool{}, map[string]bool{}
	state := func(id, _ string) ingressState {
		switch {
		case absent[id]:
			return ingressAbsent
		case took[id]:
			return ingressReady
		}
		return ingressPending
	}
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

	// CAR-50: what is there at the start counts at once.
	a.take("s", s("first"), false, state, now)
	both := s("first", "new")
	a.take("s", both, true, state, now)
	require.Equal(t, []string{"first"}, sees("x", both))
	require.Equal(t, []string{"first", "new"}, sees("new", both), "its own node sees it")
	changed, next := a.admit(state, now.Add(time.Hour))
	require.Empty(t, changed, "something else serves")
	require.Zero(t, next)
	absent["new"] = true
	changed, _ = a.admit(state, now)
	require.Empty(t, changed, "its proxy is still to come")
	delete(absent, "new")
	took["new"] = true
	changed, next = a.admit(state, now)
	require.Equal(t, map[string]bool{"s": true}, changed)
	require.Zero(t, next)
	require.Equal(t, []string{"first", "new"}, sees("x", both))
	a.take("s", both, true, state, now)
	require.Empty(t, a.arriving, "who is admitted stays so")

	// Who went arrives anew.
	down := s("first", "new")
	down.Instances[1].Up = false
	a.take("s", down, true, state, now)
	took["new"] = false
	again := s("first", "new")
	a.take("s", again, true, state, now)
	require.Equal(t, []string{"first"}, sees("x", again))

	// Where nothing else serves, a slow ingress delays for a while only.
	again.Instances[0].Up = false
	a.take("s", again, true, state, now.Add(time.Second))
	changed, next = a.admit(state, now.Add(arrivalPatience-1))
	require.Empty(t, changed)
	require.Equal(t, now.Add(arrivalPatience), next)
	changed, _ = a.admit(state, now.Add(arrivalPatience))
	require.NotEmpty(t, changed)
	require.Equal(t, []string{"first", "new"}, sees("x", again))

	// And one without a proxy to wait for counts at once.
	a.take("s", nil, true, state, now)
	absent["unconnected"] = true
	a.take("s", s("unconnected"), true, state, now)
	require.Equal(t, []string{"unconnected"}, sees("x", s("unconnected")))

	a.take("s", nil, true, state, now)
	require.Empty(t, a.admitted)

	// While an owner that comes back arrives, the one that stood in for it goes on.
	a.take("s", s("second"), false, state, now)
	back := s("owner", "second", "third")
	back.Instances[1].Standby, back.Instances[2].Standby = true, true
	a.take("s", back, true, state, now)
	require.Equal(t, []string{"second"}, sees("x", back))
	require.False(t, a.seen("x", back).Instances[0].Standby)
	require.True(t, back.Instances[1].Standby, "the snapshot is as it was")
	require.True(t, a.seen("owner", back).Instances[1].Standby)
}

// What goes and comes back before the control plane settled comes anew: its proxy may
// have gone with it.
func TestBackBeforeSettled(t *testing.T) {
	t.Parallel()
	a := newArrivals()
	pending := func(string, string) ingressState { return ingressPending }
	owner, second := snapNode("owner", 1), snapNode("second", 2)
	both := snapService("s", owner, second)
	now := time.Unix(1000, 0)
	a.take("s", both, false, pending, now)
	require.Len(t, a.admitted["s"], 2)
	a.take("s", snapService("s", second), false, pending, now)
	a.take("s", both, false, pending, now)
	require.Equal(t, map[string]bool{"second": true}, a.admitted["s"])
	require.Contains(t, a.arriving["s"], "owner")
	a.take("s", both, true, pending, now)
	require.Contains(t, a.arriving["s"], "owner")
	require.Empty(t, a.went)
}

// CAR-50: the digest that settles a restarted control plane brings nothing new.
func TestNothingArrivesWithTheLastDigest(t *testing.T) {
	t.Parallel()
	c := NewCache(slog.New(slog.DiscardHandler))
	tr := NewTranslator(c, nil, c.log)
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

// A proxy acknowledges its listener before it listens: an instance arrives when the
// ingress answers.
func TestArrivesWhenTheIngressAnswers(t *testing.T) {
	t.Parallel()
	c := NewCache(slog.New(slog.DiscardHandler))
	node := snapNode("a", 1)
	asked, answer := make(chan netip.AddrPort), make(chan error)
	tr := NewTranslator(c, func(_ context.Context, ingress netip.AddrPort) error {
		asked <- ingress
		return <-answer
	}, c.log)
	snap := newSnapshot(nil, node)
	tr.Translate(snap, everythingOf(snap))
	st := &stream{node: c.nodes["a"]}
	c.nodes["a"].released = make(chan struct{})

	require.False(t, c.listens(st, node.Proxy.Ingress, tr.probe))
	require.Equal(t, node.Proxy.Ingress, <-asked)
	answer <- errors.New("refused")
	<-asked
	require.False(t, c.listens(st, node.Proxy.Ingress, tr.probe), "asked by one only")
	news, unlisten := c.listen()
	defer unlisten()
	answer <- nil
	<-news
	require.True(t, c.listens(st, node.Proxy.Ingress, tr.probe))

	gone := &stream{node: c.nodes["a"]}
	require.False(t, c.listens(gone, node.Proxy.Ingress, tr.probe))
	<-asked
	close(c.nodes["a"].released)
	answer <- errors.New("refused")
}
