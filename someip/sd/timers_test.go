package sd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Timers fire in the order of their times, then in that in which they were set,
// whatever was set, moved and stopped before.
func TestTimers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	start := time.Unix(1000, 0)
	for range 200 {
		var s timers
		var fired, want []int
		all := make([]timer, 20)
		var order []int // armed timers as they were set last
		for i := range all {
			all[i].fire = func(time.Time) { fired = append(fired, i) }
		}
		for range 100 {
			i := rnd.IntN(len(all))
			order = slices.DeleteFunc(order, func(o int) bool { return o == i })
			if rnd.IntN(4) == 0 {
				s.stop(&all[i])
				continue
			}
			s.set(&all[i], start.Add(time.Duration(rnd.IntN(10))*time.Second))
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return all[a].at.Compare(all[b].at) })
		if next, ok := s.next(); len(order) > 0 {
			require.True(t, ok)
			require.Equal(t, all[order[0]].at, next)
		}
		now := start.Add(5 * time.Second)
		for _, i := range order {
			if !all[i].at.After(now) {
				want = append(want, i)
			}
		}
		s.run(now)
		require.Equal(t, want, fired)
		s.run(start.Add(time.Hour))
		require.Equal(t, order, fired[:len(order)])
		require.Len(t, fired, len(order))
		_, ok := s.next()
		require.False(t, ok)
	}
}
