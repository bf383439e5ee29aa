package someipadapter_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/someipadapter"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// ringNode is a gateway on the networks rear-ecu and front-ecu, told to expose
// what it sees on one on the other, both ways.
type ringNode struct {
	*bridge.Table
	stop func()
}

func startRingNode(t *testing.T, rear, front domain, name string, host byte) ringNode {
	t.Helper()
	n := ringNode{Table: bridge.NewTable(bridge.Config{Policy: allow})}
	var stacks []*runtime.Stack
	for _, at := range []struct {
		domain
		name string
	}{{rear, "rear-ecu"}, {front, "front-ecu"}} {
		s, err := at.startAs(at.name, host)
		require.NoError(t, err)
		stacks = append(stacks, s)
		a := someipadapter.New(someipadapter.Config{
			Network: s.Network(at.name), Interfaces: bridge.NewInterfaces(), Node: name,
			IDs: func(inst bridge.Instance) (someip.InstanceKey, bool) { return opaque.ParseInstanceName(inst.Name) },
		})
		require.NoError(t, n.Attach(a.Network(), a))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = n.Run(ctx) })
	n.stop = sync.OnceFunc(func() {
		cancel()
		run.Wait()
		for _, s := range stacks {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(n.stop)
	return n
}

// exposes tells whether the node exposes the strange instance now.
func (n ringNode) exposes() (exposed bool) {
	for _, b := range n.Plan() {
		for _, x := range b.Exposures {
			exposed = exposed || b.MeshName() == strangeName && b.Via.Name == "rear-ecu" && b.Up && x.State == bridge.Exposed
		}
	}
	return exposed
}

// Two gateways that join the same two networks make a ring: one of them exposes a
// service on the other network and the other stands by, neither takes an exposure
// for a service of that network, and the second takes over from the first.
func TestRing(t *testing.T) {
	rear, front := newDomain(t), newDomain(t)
	nodes := map[string]ringNode{"a": startRingNode(t, rear, front, "a", 1), "b": startRingNode(t, rear, front, "b", 2)}
	offerStrange(t, onNetwork(t, rear, "rear-ecu", 3))
	c, err := onNetwork(t, front, "front-ecu", 4).Client(strange)
	require.NoError(t, err)
	defer c.Close()

	call := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Call(ctx, 1, false, nil)
		return err
	}
	for _, n := range nodes {
		eventually(t, func() bool { return len(n.Plan()) > 0 }, "both see it")
	}
	eventually(t, func() bool { return nodes["a"].exposes() != nodes["b"].exposes() && call() == nil }, "one exposes it")
	for _, n := range nodes {
		require.Len(t, n.Plan(), 1, "nothing is imported from the front network")
	}
	owner, standby := "a", "b"
	if nodes["b"].exposes() {
		owner, standby = standby, owner
	}
	nodes[owner].stop()
	eventually(t, func() bool { return nodes[standby].exposes() && call() == nil }, "the other takes over")
	require.Len(t, nodes[standby].Plan(), 1)
}
