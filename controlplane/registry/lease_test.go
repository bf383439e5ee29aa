package registry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/api"
)

// stall has the control plane stand still for d: the timers of that time fire now,
// in whatever order, and nobody's beats were read.
func (b *bench) stall(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulse.Beat(time.Now().Add(-d))
	for _, n := range b.nodes {
		n.deadline = n.deadline.Add(-d)
		n.lease.Reset(max(time.Until(n.deadline), 0))
	}
}

// A control plane that was stopped declares nobody lost for that time, and those
// who stay silent after it as soon as ever.
func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		here, gone := b.join("rear"), b.join("center")
		b.sync(here, grpcService(climate, "left"))
		b.sync(gone)
		time.Sleep(api.HeartbeatInterval)
		b.stall(time.Minute)
		synctest.Wait()
		require.Equal(t, uint64(1), b.Stalls())
		for _, n := range b.Snapshot().Nodes {
			require.False(t, n.Lost, n.Name)
		}

		// The beats that lay there are read late.
		time.Sleep(api.LeaseTimeout - time.Millisecond)
		require.NoError(t, b.Beat(here))
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.False(t, b.Snapshot().Nodes[here.ID].Lost)
		require.True(t, b.Snapshot().Nodes[gone.ID].Lost, "it was silent for a whole lease after the stall")
		require.True(t, b.instances("left.cabin.climate.v1.climate")[0].Up)

		time.Sleep(api.LeaseTimeout)
		synctest.Wait()
		require.True(t, b.Snapshot().Nodes[here.ID].Lost)
		require.Equal(t, uint64(1), b.Stalls(), "a process that runs notices no stall")
	})
}

// A stall that is over just before a lease would end counts too.
func TestStallShorterThanALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		id := b.join("rear")
		b.stall(api.LeaseTimeout - time.Millisecond)
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, b.Beat(id), "the lease ended by itself")
	})
}

// CAR-50: a control plane that stands still in its grace does not settle on what
// it had no time to hear.
func TestStallInGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.join("rear")
		b.restart()
		time.Sleep(Grace - 10*time.Millisecond)
		b.stall(time.Second)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.False(t, b.Snapshot().Settled)
		time.Sleep(api.LeaseTimeout)
		synctest.Wait()
		require.True(t, b.Snapshot().Settled)
	})
}
