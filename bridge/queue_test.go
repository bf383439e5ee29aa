package bridge_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/bridge"
)

var errEnd = errors.New("end")

func item(b byte) bridge.Item { return bridge.Item{Payload: []byte{b}} }

func drain(t *testing.T, q *bridge.Queue) (items []bridge.Item, err error) {
	t.Helper()
	for {
		it, err := q.Pop(t.Context())
		if err != nil {
			return items, err
		}
		items = append(items, it)
	}
}

func TestQueueDropsOldestEvents(t *testing.T) {
	q := bridge.NewQueue(bridge.DropOldest, 3)
	for i := range byte(8) {
		q.Push(item(i))
	}
	q.Close(errEnd)
	q.Push(item(9)) // too late
	items, err := drain(t, q)
	require.ErrorIs(t, err, errEnd)
	require.Equal(t, []bridge.Item{{Payload: []byte{5}, Gap: 5}, item(6), item(7)}, items)
	require.EqualValues(t, 5, q.Dropped())
}

func TestQueueKeepsLatestValue(t *testing.T) {
	q := bridge.NewQueue(bridge.KeepLatest, bridge.EventQueueSize)
	q.Push(bridge.Item{Payload: []byte{1}, Initial: true})
	q.Push(item(2))
	q.Push(item(3))
	it, err := q.Pop(t.Context())
	require.NoError(t, err)
	require.Equal(t, bridge.Item{Payload: []byte{3}, Gap: 2, Initial: true}, it, "a watch begins with the current value")
	q.Push(item(4))
	q.Push(item(5))
	it, err = q.Pop(t.Context())
	require.NoError(t, err)
	require.Equal(t, bridge.Item{Payload: []byte{5}, Gap: 1}, it)
}

// What was lost further up stays counted, whatever happens here.
func TestQueueAddsGaps(t *testing.T) {
	q := bridge.NewQueue(bridge.DropOldest, 1)
	q.Push(bridge.Item{Gap: 2})
	q.Push(bridge.Item{Gap: 3})
	it, err := q.Pop(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2+1+3, it.Gap)

	q.Push(bridge.Item{Gap: math.MaxUint32})
	q.Push(bridge.Item{Gap: 1})
	it, err = q.Pop(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, uint32(math.MaxUint32), it.Gap)
}

// However many items may wait, their payloads take a bounded room.
func TestQueueBoundsBytes(t *testing.T) {
	q := bridge.NewQueue(bridge.DropOldest, bridge.EventQueueSize)
	for range 20 {
		q.Push(bridge.Item{Payload: make([]byte, 100<<10)})
	}
	it, err := q.Pop(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 10, it.Gap, "10 of 100 KiB fit into 1 MiB")

	require.EqualValues(t, 9, q.Push(bridge.Item{Payload: make([]byte, 2<<20)}), "one item takes the place of many")
	require.EqualValues(t, 19, q.Dropped())
	it, err = q.Pop(t.Context())
	require.NoError(t, err)
	require.Len(t, it.Payload, 2<<20, "one larger than all is taken alone")
	require.EqualValues(t, 9, it.Gap)
}

func TestQueueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := bridge.NewQueue(bridge.DropOldest, 4)
		got := make(chan bridge.Item)
		go func() {
			it, _ := q.Pop(t.Context())
			got <- it
		}()
		synctest.Wait()
		q.Push(item(1))
		require.Equal(t, item(1), <-got)

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errEnd)
		_, err := q.Pop(ctx)
		require.ErrorIs(t, err, errEnd)
	})
}

func TestQueueDoesNotAllocateInSteadyState(t *testing.T) {
	q := bridge.NewQueue(bridge.DropOldest, 16)
	ctx := t.Context()
	it := item(1)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		q.Push(it)
		_, _ = q.Pop(ctx)
	}))
}
