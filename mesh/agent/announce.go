package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// maxUploads bounds the descriptor sets that are sent at once.
const maxUploads = 8

// synchronize gives the control plane all of the list.
func (a *Agent) synchronize(ctx context.Context, registry meshv1.ServiceRegistryClient, stored *hashes) error {
	all, change := a.list.all()
	if err := a.upload(ctx, registry, stored, all); err != nil {
		return err
	}
	resp, err := registry.Synchronize(ctx, &meshv1.SynchronizeRequest{Services: all})
	if err != nil {
		return err
	}
	a.confirm(change, all, resp.GetRefusals())
	return nil
}

// announce gives the control plane each change of the list as it comes; what
// changes while a request runs goes with the next one (CAR-15).
func (a *Agent) announce(ctx context.Context, registry meshv1.ServiceRegistryClient, stored *hashes) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.uploadExpected(ctx, registry, stored) })
	g.Go(func() error { return a.announceChanges(ctx, registry, stored) })
	return g.Wait()
}

func (a *Agent) announceChanges(ctx context.Context, registry meshv1.ServiceRegistryClient, stored *hashes) error {
	for {
		req, changed, news := a.list.changes()
		if req == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-news:
			}
			continue
		}
		if err := a.upload(ctx, registry, stored, req.GetSet()); err != nil {
			return err
		}
		resp, err := registry.Update(ctx, req)
		if err != nil {
			return err
		}
		a.confirm(changed, req.GetSet(), resp.GetRefusals())
	}
}

// upload stores the descriptor sets first, so that nobody hears of an instance
// whose interface cannot be had.
func (a *Agent) upload(ctx context.Context, registry meshv1.ServiceRegistryClient, stored *hashes, services []*meshv1.ServiceInstance) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxUploads)
	for _, s := range services {
		hash := s.GetDescriptors()
		if hash != "" && stored.add(hash) {
			g.Go(func() error { return a.put(ctx, registry, hash) })
		}
	}
	return g.Wait()
}

// uploadExpected stores the descriptor sets of instances that may come, one after
// the other: the control plane forces each to its disk, and an instance that
// comes need not wait for that.
func (a *Agent) uploadExpected(ctx context.Context, registry meshv1.ServiceRegistryClient, stored *hashes) error {
	for _, hash := range a.list.expected() {
		if stored.has(hash) {
			continue
		}
		if err := a.put(ctx, registry, hash); err != nil {
			return err
		}
		stored.add(hash)
	}
	return nil
}

func (a *Agent) put(ctx context.Context, registry meshv1.ServiceRegistryClient, hash string) error {
	resp, err := registry.PutDescriptors(ctx, &meshv1.PutDescriptorsRequest{DescriptorSet: a.list.descriptorSet(hash)})
	if err != nil {
		return err
	}
	if resp.GetHash() != hash {
		return fmt.Errorf("the control plane stored %s under %s", hash, resp.GetHash())
	}
	return nil
}

// hashes are those of the descriptor sets that a control plane has.
type hashes struct {
	mu  sync.Mutex
	set map[string]struct{}
}

func (h *hashes) has(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.set[hash]
	return ok
}

// add returns false if the hash is there already.
func (h *hashes) add(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.set[hash]; ok {
		return false
	}
	if h.set == nil {
		h.set = map[string]struct{}{}
	}
	h.set[hash] = struct{}{}
	return true
}

func (a *Agent) confirm(change uint64, services []*meshv1.ServiceInstance, refusals []*meshv1.Refusal) {
	l := &a.list
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range services {
		delete(l.refused, s.GetName())
	}
	for _, r := range refusals {
		l.refused[r.GetName()] = r.GetReason()
		a.log.Warn("instance refused", "name", r.GetName(), "reason", r.GetReason())
	}
	l.told = max(l.told, change)
	l.tell()
}

// Flush waits until the control plane has confirmed all that was set before, or
// until ctx ends.
func (a *Agent) Flush(ctx context.Context) error {
	l := &a.list
	l.mu.Lock()
	want := l.change
	l.mu.Unlock()
	for {
		l.mu.Lock()
		done, news := l.told >= want, l.news
		l.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		}
	}
}

// all returns everything and the number of the change that it includes.
func (l *list) all() ([]*meshv1.ServiceInstance, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.dirty)
	clear(l.refused)
	out := make([]*meshv1.ServiceInstance, 0, len(l.shown))
	for _, name := range slices.Sorted(maps.Keys(l.shown)) {
		out = append(out, l.shown[name])
	}
	return out, l.change
}

// changes returns what changed since it was asked before, nil if nothing did, and
// a channel that tells of the next change.
func (l *list) changes() (*meshv1.UpdateRequest, uint64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dirty) == 0 {
		return nil, l.change, l.news
	}
	req := &meshv1.UpdateRequest{}
	for _, name := range slices.Sorted(maps.Keys(l.dirty)) {
		if s := l.shown[name]; s != nil {
			req.Set = append(req.Set, s)
		} else {
			req.Remove = append(req.Remove, name)
			delete(l.refused, name)
		}
	}
	clear(l.dirty)
	return req, l.change, l.news
}

// Expect makes the descriptor set of an interface known to the control plane
// before the first instance comes. It must be called before Run; nobody may
// change the set.
func (a *Agent) Expect(descriptors []byte) {
	a.list.mu.Lock()
	defer a.list.mu.Unlock()
	a.list.sets[hashOf(descriptors)] = descriptors
}

func (l *list) expected() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.sets))
}

func (l *list) descriptorSet(hash string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sets[hash]
}

// ended turns the orderly end of a stream, which a control plane that stops
// makes, into a status.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return status.Error(codes.Unavailable, "the control plane ended the stream")
	}
	return err
}
