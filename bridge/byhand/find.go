package byhand

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Look returns the instances that others offer on the network and the filter
// selects, by their ids, when ctx ends: offers come as their servers repeat them.
func Look(ctx context.Context, n *runtime.Network, filter someip.InstanceKey) ([]runtime.Availability, error) {
	var mu sync.Mutex
	seen := map[someip.InstanceKey]runtime.Availability{}
	err := n.Observe(ctx, filter, func(a runtime.Availability) {
		mu.Lock()
		defer mu.Unlock()
		if a.Up {
			seen[a.Key] = a
		} else {
			delete(seen, a.Key)
		}
	})
	if err != nil {
		return nil, err
	}
	<-ctx.Done()
	mu.Lock()
	defer mu.Unlock()
	all := make([]runtime.Availability, 0, len(seen))
	for _, a := range seen {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b runtime.Availability) int {
		return cmp.Or(cmp.Compare(a.Key.Service, b.Key.Service), cmp.Compare(a.Key.Instance, b.Key.Instance), cmp.Compare(a.Key.Major, b.Key.Major))
	})
	return all, nil
}
