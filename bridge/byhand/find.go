package byhand

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Look returns the instances that others offer on the network and the filter
// selects, by their ids, when ctx ends: offers come as their servers repeat them.
// With enough, it returns as soon as there is one.
func Look(ctx context.Context, n *runtime.Network, filter someip.InstanceKey, enough bool) ([]runtime.Availability, error) {
	var mu sync.Mutex
	seen := map[someip.InstanceKey]runtime.Availability{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := n.Observe(ctx, filter, func(a runtime.Availability) {
		mu.Lock()
		defer mu.Unlock()
		if a.Up {
			seen[a.Key] = a
			if enough {
				cancel()
			}
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

// Await returns the first instance that the filter selects.
func Await(ctx context.Context, n *runtime.Network, filter someip.InstanceKey) (runtime.Availability, error) {
	all, err := Look(ctx, n, filter, true)
	if err != nil {
		return runtime.Availability{}, err
	}
	if len(all) == 0 {
		return runtime.Availability{}, fmt.Errorf("%s is not offered: %w", Text(filter), context.Cause(ctx))
	}
	return all[0], nil
}

// Text writes a key as people do: 6001.0001 v1, with * for any.
func Text(k someip.InstanceKey) string {
	instance, major := fmt.Sprintf("%04x", k.Instance), fmt.Sprintf(" v%d", k.Major)
	if k.Instance == someip.AnyInstance {
		instance = "*"
	}
	if k.Major == someip.AnyMajor {
		major = ""
	}
	return fmt.Sprintf("%04x.%s%s", k.Service, instance, major)
}
