package registry

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

const left = "left.cabin.climate.v1.climate"

// CAR-15, CAR-16.
func TestOwnServicesOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	center, rear := b.join("center"), b.join("rear")
	b.refused(NoDigest, second(b.Update(rear, nil, nil))) // the digest comes first
	b.sync(center)
	b.sync(rear, someipService(climate, "left"))
	before := b.Snapshot()
	refusals, err := b.Update(center, nil, []string{left, "never.heard.of"})
	require.NoError(t, err)
	require.Len(t, refusals, 1)
	require.Equal(t, left, refusals[0].GetName())
	b.sync(center) // a digest says nothing of others
	require.Same(t, before, b.Snapshot())

	refusals, err = b.Update(rear, nil, []string{left})
	require.NoError(t, err)
	require.Empty(t, refusals)
	require.Empty(t, b.Snapshot().Services)
	require.Empty(t, b.Snapshot().Interfaces)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	b.sync(id, grpcService("a.v1.A", ""))
	for want, spoil := range map[string]func(*meshv1.ServiceInstance){
		"interface":   func(s *meshv1.ServiceInstance) { s.Interface = "Climate" },
		"instance":    func(s *meshv1.ServiceInstance) { s.Instance = strings.Repeat("x", 101) },
		"mesh name":   func(s *meshv1.ServiceInstance) { s.Name = "right.cabin.climate.v1.climate" },
		"address":     func(s *meshv1.ServiceInstance) { s.Address = "example.org:80" },
		"address: ":   func(s *meshv1.ServiceInstance) { s.Address = "unix:relative" },
		"host:port":   func(s *meshv1.ServiceInstance) { s.Address = "127.0.0.1:0" },
		"descriptors": func(s *meshv1.ServiceInstance) { s.Descriptors = "abc" },
		"state":       func(s *meshv1.ServiceInstance) { s.State = 0 },
		"no protocol": func(s *meshv1.ServiceInstance) { s.Origin = nil },
		"no name":     func(s *meshv1.ServiceInstance) { s.Origin = &meshv1.Origin{Protocol: meshv1.Protocol_SOMEIP} },
		"ids": func(s *meshv1.ServiceInstance) {
			s.Origin.ServiceId, s.Origin.Protocol, s.Origin.Network = 1<<16, meshv1.Protocol_SOMEIP, "n"
		},
		"printable": func(s *meshv1.ServiceInstance) { s.Instance = "a\nb" },
	} {
		s := grpcService(climate, "left")
		spoil(s)
		refusals, err := b.Update(id, []*meshv1.ServiceInstance{s, grpcService("a.v1.A", "")}, nil)
		require.NoError(t, err)
		require.Len(t, refusals, 1, want)
		require.Contains(t, refusals[0].GetReason(), want)
	}
	require.Len(t, b.Snapshot().Services, 1)
	twice, err := b.Synchronize(id, []*meshv1.ServiceInstance{grpcService("a.v1.A", ""), grpcService("a.v1.A", "")})
	require.NoError(t, err)
	require.Len(t, twice, 1)
}

// What a digest has no more, or has wrong, is gone.
func TestDigestIsTheTruth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	b.sync(id, grpcService(climate, "left"), grpcService(climate, "right"))
	wrong := grpcService(climate, "left")
	wrong.Address = "nowhere"
	refusals, err := b.Update(id, []*meshv1.ServiceInstance{wrong}, nil)
	require.NoError(t, err)
	require.Len(t, refusals, 1)
	require.Len(t, b.Snapshot().Services, 2, "a refused update changes nothing")
	refusals, err = b.Synchronize(id, []*meshv1.ServiceInstance{wrong})
	require.NoError(t, err)
	require.Len(t, refusals, 1)
	require.Empty(t, b.Snapshot().Services)
}

// A gateway that was started anew gives its first digest before it has found what
// is on its networks: callers are told so, and not that there is no such thing.
func TestDigestOfAnEarlyGateway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	b.sync(id, someipService(climate, "left"), grpcService(climate, "right"))
	b.sync(id)
	require.Len(t, b.Snapshot().Services, 1, "a native service is what the node says it is")
	inst := b.instances(left)[0]
	require.False(t, inst.Up)
	require.Contains(t, inst.Reason, "has not seen it")
	b.sync(id, someipService(climate, "left"))
	require.True(t, b.instances(left)[0].Up)
	b.sync(id)
	b.sync(id)
	require.Empty(t, b.Snapshot().Services, "it is forgotten with the second digest")
}

func TestLocalhost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := grpcService(climate, "left")
	s.Address = "localhost:5000"
	b.sync(b.join("center"), s)
	require.Equal(t, "127.0.0.1:5000", b.instances(left)[0].Address.String())
}

// Two names equal after mapping: the later is refused. A different thing of the same
// name is too, until the node that has it is lost.
func TestNameClash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		center, rear := b.join("center"), b.join("rear")
		b.sync(center, grpcService(climate, "left"))
		b.sync(rear)
		upper := grpcService(climate, "LEFT")
		foreign := someipService(climate, "left")
		for _, s := range []*meshv1.ServiceInstance{upper, foreign} {
			refusals, err := b.Update(rear, []*meshv1.ServiceInstance{s}, nil)
			require.NoError(t, err)
			require.Len(t, refusals, 1)
			require.Contains(t, refusals[0].GetReason(), "on node center")
		}
		require.Len(t, b.instances(left), 1)

		for range 5 {
			time.Sleep(api.HeartbeatInterval)
			require.NoError(t, b.Beat(rear))
		}
		refusals, err := b.Update(rear, []*meshv1.ServiceInstance{foreign}, nil)
		require.NoError(t, err)
		require.Empty(t, refusals)
		require.Len(t, b.instances(left), 1)
		require.Equal(t, rear.ID, b.instances(left)[0].Node.ID)
	})
}

func TestOlderGeneration(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	s := grpcService(climate, "left")
	s.Generation = 7
	b.sync(id, s)
	older := grpcService(climate, "left")
	older.Generation, older.Address = 6, "127.0.0.1:1"
	refusals, err := b.Update(id, []*meshv1.ServiceInstance{older}, nil)
	require.NoError(t, err)
	require.Len(t, refusals, 1)
	b.sync(id, older) // a digest is the truth
	require.Equal(t, "127.0.0.1:1", b.instances(left)[0].Address.String())
}

// Two gateways that see one instance: one owns it, the other stands by.
func TestStandby(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		center, rear := b.join("center"), b.join("rear")
		b.sync(rear, someipService(climate, "left"))
		b.sync(center, someipService(climate, "left"))
		owner := func() string {
			list := b.instances(left)
			require.Len(t, list, 2)
			require.False(t, list[0].Standby)
			require.True(t, list[1].Standby)
			return list[0].Node.Name
		}
		require.Equal(t, "center", owner(), "the lowest epoch wins")

		// A short restart of the owner's gateway changes nothing.
		center, err := b.resume("center", center)
		require.NoError(t, err)
		b.sync(center, someipService(climate, "left"))
		require.Equal(t, "center", owner())

		// It sees the instance no more: the other takes over.
		gone := someipService(climate, "left")
		gone.State, gone.Reason = meshv1.InstanceState_INSTANCE_DOWN, "TTL"
		_, err = b.Update(center, []*meshv1.ServiceInstance{gone}, nil)
		require.NoError(t, err)
		require.Equal(t, "rear", owner())
		_, err = b.Update(center, []*meshv1.ServiceInstance{someipService(climate, "left")}, nil)
		require.NoError(t, err)
		require.Equal(t, "center", owner())

		// It is lost, and when it comes back it is the younger one.
		for range 5 {
			time.Sleep(api.HeartbeatInterval)
			require.NoError(t, b.Beat(rear))
		}
		require.Equal(t, "rear", owner())
		center, err = b.resume("center", center)
		require.NoError(t, err)
		b.sync(center, someipService(climate, "left"))
		require.Equal(t, "rear", owner())
	})
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sync(b.join("center"), grpcService(climate, "left"))
	b.sync(b.join("rear"), grpcService(climate, "left"))
	list := b.instances(left)
	require.Len(t, list, 2)
	require.False(t, list[0].Standby || list[1].Standby)
}

// A lost gateway takes what it bridges with it; native services stay while the
// node's proxy answers.
func TestLostNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Bool
		b := newBenchProbe(t, func(_ context.Context, ingress netip.AddrPort) error {
			if ingress.String() == "10.0.0.2:15001" && dead.Load() {
				return errors.New("no answer")
			}
			return nil
		})
		id := b.join("rear")
		native := "native.cabin.climate.v1.climate"
		b.sync(id, someipService(climate, "left"), grpcService(climate, "native"))
		lost := time.Now().Add(api.LeaseTimeout)
		time.Sleep(api.LeaseTimeout + 50*time.Millisecond)
		synctest.Wait()
		l, n := b.instances(left)[0], b.instances(native)[0]
		require.False(t, l.Up)
		require.Equal(t, "the gateway of node rear is gone", l.Reason)
		require.WithinDuration(t, lost, l.Since, time.Millisecond)
		require.True(t, n.Up)

		dead.Store(true)
		time.Sleep(3 * probeInterval)
		synctest.Wait()
		n = b.instances(native)[0]
		require.False(t, n.Up)
		require.Equal(t, "node rear does not answer", n.Reason)
		dead.Store(false)
		time.Sleep(2 * probeInterval)
		synctest.Wait()
		require.True(t, b.instances(native)[0].Up)

		// A registration alone brings nothing back: the digest does.
		id, err := b.resume("rear", id)
		require.NoError(t, err)
		require.False(t, b.instances(left)[0].Up)
		require.True(t, b.instances(native)[0].Up)
		b.sync(id, someipService(climate, "left"), grpcService(climate, "native"))
		require.True(t, b.instances(left)[0].Up)
	})
}

// A node that is lost for good and cannot be asked takes all of its services along.
func TestLostNodeWithoutProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.sync(b.join("rear"), grpcService(climate, "left"))
		time.Sleep(2 * api.LeaseTimeout)
		synctest.Wait()
		require.False(t, b.instances(left)[0].Up)
	})
}

// CAR-17: readers hear of changes, merged, and of nothing else.
func TestSubscription(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	_, sub := b.Subscribe()
	defer sub.Close()
	b.sync(id, grpcService(climate, "left"))
	_, err := b.Update(id, []*meshv1.ServiceInstance{grpcService(climate, "right")}, nil)
	require.NoError(t, err)
	<-sub.Ready()
	c, snap := sub.Take()
	require.Same(t, snap, b.Snapshot())
	require.Equal(t, map[string]bool{left: true, "right.cabin.climate.v1.climate": true}, c.Services)
	require.Equal(t, map[string]bool{id.ID: true}, c.Nodes)
	require.Equal(t, map[string]bool{climate: true}, c.Interfaces)

	_, err = b.Update(id, []*meshv1.ServiceInstance{grpcService(climate, "right")}, nil)
	require.NoError(t, err)
	require.NoError(t, b.Beat(id))
	select {
	case <-sub.Ready():
		t.Fatal("nothing changed")
	default:
	}
	require.Same(t, snap, b.Snapshot())
}

// A second instance never breaks callers, and the order in which instances come
// back after a restart does not matter.
func TestDefaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	name := func(instance string) string { return api.MeshName(climate, instance) }
	is := func(want string) {
		t.Helper()
		require.Equal(t, want, b.Snapshot().Interfaces[climate].Default)
	}
	update := func(add string, remove ...string) {
		t.Helper()
		var set []*meshv1.ServiceInstance
		if add != "" {
			set = append(set, grpcService(climate, add))
		}
		_, err := b.Update(id, set, remove)
		require.NoError(t, err)
	}
	b.sync(id, grpcService(climate, "left"), grpcService(climate, "a"))
	is(name("left"))
	update("b")
	is(name("left"))
	update("", name("left"))
	is("") // a and b remain: neither may take its place unasked
	update("", name("b"))
	is(name("a")) // the only one
	update("left")
	is(name("left")) // the first is back
	update("", name("left"))
	is(name("a"))
	update("b")
	is(name("a")) // callers have reached it
	update("left")
	is(name("a"))

	b.restart()
	b.sync(id)
	update("left")
	is(name("left")) // the only one yet
	update("a")
	is(name("a"))
}

func TestServiceLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	var all []*meshv1.ServiceInstance
	for i := range maxServices + 1 {
		all = append(all, grpcService(climate, strings.Repeat("x", 1+i%50)+string(rune('a'+i/50%26))+string(rune('a'+i/1300))))
	}
	refusals, err := b.Synchronize(id, all)
	require.NoError(t, err)
	require.Len(t, refusals, 1)
}
