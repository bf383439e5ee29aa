package registry

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api"
)

// registerFrom registers a node from a host.
func (b *bench) registerFrom(peer, name string) (api.Identity, error) {
	id, _, err := b.Register(Registration{Node: record(name), Peer: peer})
	return id, err
}

// A host that registers without end is refused after a share of its own, and again
// a second later; others register all the time, and what it took is bounded.
func TestRegistrationFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for second := range 3 {
			for i := range 100 {
				_, err := b.registerFrom("10.0.0.66", fmt.Sprintf("rogue-%d-%d", second, i))
				switch {
				case i >= registrationsASecond:
					b.refused(TooOften, err)
				case second*registrationsASecond+i >= maxNodesOfPeer:
					b.refused(Full, err)
				default:
					require.NoError(t, err)
				}
			}
			_, err := b.registerFrom("10.0.0.2", fmt.Sprintf("rear-%d", second))
			require.NoError(t, err)
			time.Sleep(time.Second)
		}
		require.Len(t, b.names, maxNodesOfPeer+3)
		require.EqualValues(t, 150, b.Refused()[TooOften])
		require.EqualValues(t, 150-maxNodesOfPeer, b.Refused()[Full])
		// Its own nodes may still come back.
		_, err := b.registerFrom("10.0.0.66", "rogue-0-0")
		require.NoError(t, err)
	})
}

// What counts registrations is bounded, too.
func TestRegistrationsOfManyHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range maxPeers {
			require.Nil(t, b.mayRegister(Registration{Peer: fmt.Sprint(i)}, time.Now()))
		}
		b.refused(TooOften, b.mayRegister(Registration{Peer: "one more"}, time.Now()))
		time.Sleep(time.Second)
		require.Nil(t, b.mayRegister(Registration{Peer: "one more"}, time.Now()))
		require.Len(t, b.peers, 1)
	})
}

// Changes of a node are bounded by the second; those of another are taken.
func TestChangeFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		rogue, node := b.join("center"), b.join("rear")
		b.sync(rogue)
		b.sync(node)
		for range DefaultChanges - digestCost {
			_, err := b.Update(rogue, nil, nil)
			require.NoError(t, err)
		}
		_, err := b.Update(rogue, nil, nil)
		b.refused(TooOften, err)
		_, err = b.Synchronize(rogue, nil)
		b.refused(TooOften, err)
		_, err = b.Update(node, nil, nil)
		require.NoError(t, err)
		require.NoError(t, b.Beat(rogue), "its lease is none of it")
		b.mu.Lock()
		b.nodes[rogue.ID].changes = rate{}
		b.mu.Unlock()
		b.sync(rogue)
	})
}

// CAR-50: an agent that beats and never says what it has is lost in the end, with a
// status of its own; what others have stays. It may register again.
func TestNoDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		mute, node := b.join("center"), b.join("rear")
		b.sync(node, grpcService(climate, "left"))
		session, err := b.Open(mute)
		require.NoError(t, err)
		beat := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(api.HeartbeatInterval) {
				_ = b.Beat(mute)
				require.NoError(t, b.Beat(node))
			}
		}
		beat(DefaultDigestTimeout - time.Second)
		select {
		case <-session.Done():
			require.Fail(t, "too early")
		default:
		}
		beat(2 * time.Second)
		<-session.Done()
		b.refused(DigestLate, session.Err())
		b.refused(LeaseExpired, b.Beat(mute))
		require.True(t, b.Snapshot().Nodes[mute.ID].Lost)
		require.EqualValues(t, 1, b.Refused()[DigestLate])
		require.Len(t, b.instances(api.MeshName(climate, "left")), 1)
		require.True(t, b.instances(api.MeshName(climate, "left"))[0].Up)

		again, err := b.resume("center", mute)
		require.NoError(t, err)
		b.sync(again)
		mute = again
		beat(2 * DefaultDigestTimeout)
		require.NoError(t, b.Beat(again))
	})
}

// Requests of an earlier epoch and with ids of others change nothing, however many
// they are, and are counted by their reason.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id, other := b.join("center"), b.join("rear")
	b.sync(id, grpcService(climate, "left"))
	b.sync(other)
	now, err := b.resume("center", id)
	require.NoError(t, err)
	b.sync(now, grpcService(climate, "left"))
	before := b.Snapshot()
	for range 100 {
		_, err = b.Synchronize(id, nil)
		b.refused(StaleEpoch, err)
		_, err = b.Synchronize(api.Identity{ID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6", Epoch: 1}, nil)
		b.refused(UnknownNode, err)
		_, _, err = b.Register(Registration{Node: record("rear"), Resume: now})
		b.refused(Invalid, err)
		refusals, err := b.Update(other, nil, []string{api.MeshName(climate, "left")})
		require.NoError(t, err)
		require.Len(t, refusals, 1)
	}
	require.Same(t, before, b.Snapshot())
	require.EqualValues(t, 100, b.Refused()[StaleEpoch])
	require.EqualValues(t, 100, b.Refused()[UnknownNode])
	require.EqualValues(t, 200, b.Refused()[Invalid])
}
