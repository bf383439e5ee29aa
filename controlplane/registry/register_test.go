package registry

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// CAR-8: 122 bits, never twice.
func TestIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100_000 {
		id, err := newID()
		require.NoError(t, err)
		require.True(t, validID(id), id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

// CAR-7, CAR-9.
func TestRegister(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	n := b.Snapshot().Nodes[id.ID]
	require.Equal(t, "10.0.0.1", n.Address.String())
	require.False(t, n.Synced)
	other := b.join("rear")
	require.Greater(t, other.Epoch, id.Epoch)

	six := record("six")
	six.Address = netip.MustParseAddr("fd00::6")
	_, _, err := b.Register(Registration{Node: six})
	require.NoError(t, err)
	require.Len(t, b.Snapshot().Nodes, 3)
}

func TestRegisterInvalid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, spoil := range map[string]func(*store.Node){
		"no name":            func(n *store.Node) { n.Name = "" },
		"name in upper case": func(n *store.Node) { n.Name = "Rear" },
		"no address":         func(n *store.Node) { n.Address = netip.Addr{} },
		"any address":        func(n *store.Node) { n.Address = netip.IPv4Unspecified() },
		"multicast address":  func(n *store.Node) { n.Address = netip.MustParseAddr("224.0.0.1") },
		"no ingress port":    func(n *store.Node) { n.Proxy.Ingress = netip.MustParseAddrPort("10.0.0.2:0") },
		"no egress":          func(n *store.Node) { n.Proxy.Egress = netip.AddrPort{} },
		"no gateway socket":  func(n *store.Node) { n.Proxy.GatewaySocket = "" },
		"relative socket":    func(n *store.Node) { n.Proxy.EgressSocket = "egress.sock" },
		"long socket":        func(n *store.Node) { n.Proxy.GatewaySocket = "/" + string(make([]byte, 107)) },
	} {
		rec := record("rear")
		spoil(&rec)
		_, _, err := b.Register(Registration{Node: rec})
		b.refused(Invalid, err)
		require.Empty(t, b.Snapshot().Nodes, name)
	}
	require.Equal(t, uint64(10), b.Refused()[Invalid])
}

// CAR-13: each wrong identity has its own answer, and none changes anything.
func TestIdentities(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id := b.join("rear")
		b.sync(id, grpcService(climate, "left"))
		old := b.join("center")
		newer := record("center")
		newer.BootID, newer.BootTime = "boot-2", 2
		_, _, err := b.Register(Registration{Node: newer})
		require.NoError(t, err)
		resumed, err := b.resume("rear", id)
		require.NoError(t, err)
		require.Equal(t, id.ID, resumed.ID)
		require.Greater(t, resumed.Epoch, id.Epoch)

		wrong := map[Reason]api.Identity{
			NoIdentity:   {},
			UnknownNode:  {ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Epoch: 1},
			Superseded:   old,
			StaleEpoch:   id,
			LeaseExpired: {ID: id.ID, Epoch: resumed.Epoch + 1},
		}
		before := b.Snapshot()
		codes := map[string]bool{}
		for reason, id := range wrong {
			for _, err := range []error{
				b.Check(id), b.Beat(id),
				second(b.Open(id)),
				second(b.Synchronize(id, nil)),
				second(b.Update(id, nil, []string{"left.cabin.climate.v1.climate"})),
			} {
				b.refused(reason, err)
				codes[status.Code(err).String()] = true
			}
			require.Equal(t, uint64(5), b.Refused()[reason], reason)
		}
		require.Same(t, before, b.Snapshot())
		require.Len(t, codes, 4)

		time.Sleep(2 * api.LeaseTimeout)
		synctest.Wait()
		b.refused(LeaseExpired, b.Check(resumed))
	})
}

func second[T any](_ T, err error) error { return err }

// CAR-10: while a lease lives its name is taken, unless the caller proves the id
// or a newer boot of the machine.
func TestSameName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id := b.join("rear")
		session, err := b.Open(id)
		require.NoError(t, err)
		before := b.Snapshot()

		for name, change := range map[string]func(*store.Node){
			"the same boot":   func(*store.Node) {},
			"an older boot":   func(n *store.Node) { n.BootID, n.BootTime = "boot-0", 0 },
			"another machine": func(n *store.Node) { n.MachineID, n.BootID, n.BootTime = "other", "boot-2", 2 },
			"no machine":      func(n *store.Node) { n.MachineID, n.BootID, n.BootTime = "", "boot-2", 2 },
		} {
			rec := record("rear")
			change(&rec)
			_, _, err := b.Register(Registration{Node: rec})
			b.refused(NameTaken, err)
			require.ErrorContains(t, err, "10.0.0.2", name)
			require.ErrorContains(t, err, "since", name)
		}
		require.Same(t, before, b.Snapshot())

		b.sync(id, grpcService(climate, "left"), someipService(climate, "right"))
		rec := record("rear")
		rec.BootID, rec.BootTime = "boot-2", 2
		next, resumed, err := b.Register(Registration{Node: rec})
		require.NoError(t, err)
		require.False(t, resumed)
		require.NotEqual(t, id.ID, next.ID)
		<-session.Done()
		b.refused(Superseded, session.Err())
		// The old one may not come back, not even by resuming.
		_, err = b.resume("rear", id)
		b.refused(Superseded, err)
		b.restart()
		_, err = b.resume("rear", id)
		b.refused(Superseded, err)
	})
}

// CAR-10: services follow their node to its new id, and the digest re-homes them.
func TestSupersedeKeepsServices(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("rear")
	b.sync(id, someipService(climate, "left"))
	rec := record("rear")
	rec.BootID, rec.BootTime = "boot-2", 2
	next, _, err := b.Register(Registration{Node: rec})
	require.NoError(t, err)
	require.Nil(t, b.Snapshot().Nodes[id.ID])
	left := b.instances("left.cabin.climate.v1.climate")
	require.Len(t, left, 1)
	require.Equal(t, next.ID, left[0].Node.ID)
	require.False(t, left[0].Up)
	b.sync(next, someipService(climate, "left"))
	require.True(t, b.instances("left.cabin.climate.v1.climate")[0].Up)
}

// CAR-10: after the lease the name is free, and the node itself resumes.
func TestLeaseExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id := b.join("rear")
		for range 10 {
			time.Sleep(api.HeartbeatInterval)
			require.NoError(t, b.Beat(id))
		}
		time.Sleep(api.LeaseTimeout - time.Millisecond)
		synctest.Wait()
		require.False(t, b.Snapshot().Nodes[id.ID].Lost)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		n := b.Snapshot().Nodes[id.ID]
		require.True(t, n.Lost)
		require.WithinDuration(t, time.Now(), n.Since, 10*time.Millisecond)
		b.refused(LeaseExpired, b.Beat(id))

		back, err := b.resume("rear", id)
		require.NoError(t, err)
		require.Equal(t, id.ID, back.ID)
		require.False(t, b.Snapshot().Nodes[id.ID].Lost)
		time.Sleep(2 * api.LeaseTimeout)
		fresh := b.join("rear") // its state is lost: a new id, at once
		require.NotEqual(t, id.ID, fresh.ID)
		b.refused(Superseded, b.Check(back))
	})
}

// The answer of a resume may get lost: what was proven stays good until its
// successor is used.
func TestResumeTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("rear")
	require.NoError(t, b.Check(id))
	lost, err := b.resume("rear", id)
	require.NoError(t, err)
	second, err := b.resume("rear", id)
	require.NoError(t, err)
	require.Greater(t, second.Epoch, lost.Epoch)
	require.NoError(t, b.Check(second))
	_, err = b.resume("rear", id)
	b.refused(StaleEpoch, err)
	_, err = b.resume("center", second)
	b.refused(Invalid, err)
}

// CAR-50, CAR-55: a store that lost everything takes over what agents prove, and
// epochs still rise.
func TestAdopt(t *testing.T) {
	t.Parallel()
	old := newBench(t)
	a, z := old.join("center"), old.join("rear")
	b := newBench(t)
	gotZ, err := b.resume("rear", z)
	require.NoError(t, err)
	gotA, err := b.resume("center", a)
	require.NoError(t, err)
	require.Equal(t, []api.Identity{a, z}, []api.Identity{gotA, gotZ})
	require.Greater(t, b.join("third").Epoch, z.Epoch)

	for reason, id := range map[Reason]api.Identity{
		UnknownNode: {ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Epoch: 1},
	} {
		_, err = b.resume("rear", id) // the name has another holder
		b.refused(reason, err)
	}
	for _, id := range []api.Identity{
		{ID: "guess", Epoch: 1},
		{ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"},
		{ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Epoch: 1 << 60},
	} {
		_, err = b.resume("fourth", id)
		b.refused(Invalid, err)
	}
}

// Ids, epochs and defaults survive a restart (CAR-5, 10); the node just goes on.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id, gone := b.join("center"), b.join("rear")
		b.sync(id, grpcService(climate, "left"))
		b.restart()
		require.Empty(t, b.Snapshot().Services)
		require.NoError(t, b.Beat(id))
		require.False(t, b.Snapshot().Settled)
		b.sync(id, grpcService(climate, "left"))
		require.False(t, b.Snapshot().Settled, "rear may still come")
		b.sync(gone)
		require.True(t, b.Snapshot().Settled)

		b.restart()
		b.sync(id)
		for range 20 {
			time.Sleep(Grace / 20)
			require.NoError(t, b.Beat(id))
		}
		synctest.Wait()
		require.True(t, b.Snapshot().Settled)
		require.True(t, b.Snapshot().Nodes[gone.ID].Lost)
	})
}

func TestNodeLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range maxNodes {
		b.names[string(rune(i))] = newNode(store.Node{})
	}
	_, _, err := b.Register(Registration{Node: record("rear")})
	b.refused(Full, err)
	clear(b.names)
}

// A storage that fails changes nothing.
func TestStorageFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.join("center")
	b.sync(id)
	before := b.Snapshot()
	require.NoError(t, b.store.Close())
	_, _, err := b.Register(Registration{Node: record("rear")})
	b.refused(Storage, err)
	_, err = b.Synchronize(id, []*meshv1.ServiceInstance{grpcService(climate, "left")})
	b.refused(Storage, err)
	require.Same(t, before, b.Snapshot())
}
