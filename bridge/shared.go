package bridge

import (
	"context"
	"slices"
	"sync"

	"carisma.dev/gateway/codegen/model"
)

// shared is an imported service as the table hands it to exposers: watchers of
// one event share one upstream watch, and all end when the instance goes.
type shared struct {
	svc  Service
	gone chan struct{} // closed after err was set
	err  error
	run  *sync.WaitGroup // of the upstream watches

	mu   sync.Mutex
	fans map[*model.Event]*fan
}

var _ Service = (*shared)(nil)

func newShared(svc Service, run *sync.WaitGroup) *shared {
	return &shared{svc: svc, gone: make(chan struct{}), run: run, fans: map[*model.Event]*fan{}}
}

// Interface implements [Service].
func (s *shared) Interface() *model.Interface { return s.svc.Interface() }

// Invoke implements [Service].
func (s *shared) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	select {
	case <-s.gone:
		return nil, s.err
	default:
		return s.svc.Invoke(ctx, m, in)
	}
}

// Watch implements [Service].
func (s *shared) Watch(ctx context.Context, e *model.Event, sink Sink) error {
	w := &watcher{sink: sink, ended: make(chan struct{})}
	f, err := s.join(e, w) //nolint:contextcheck // the upstream watch lasts longer than its first watcher
	if err != nil {
		return err
	}
	select {
	case <-w.ended:
		return w.err
	case <-ctx.Done():
		s.leave(e, f, w)
		return context.Cause(ctx)
	}
}

func (s *shared) join(e *model.Event, w *watcher) (*fan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		return nil, s.err
	default:
	}
	f := s.fans[e]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &fan{field: e.Field != nil, cancel: cancel}
		s.fans[e] = f
		f.add(w)
		s.run.Go(func() {
			err := s.svc.Watch(ctx, e, f.publish)
			s.forget(e, f)
			f.end(err)
		})
		return f, nil
	}
	f.add(w)
	return f, nil
}

func (s *shared) leave(e *model.Event, f *fan, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.remove(w) == 0 {
		f.cancel()
		if s.fans[e] == f {
			delete(s.fans, e)
		}
	}
}

func (s *shared) forget(e *model.Event, f *fan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.cancel()
	if s.fans[e] == f {
		delete(s.fans, e)
	}
}

// close ends all watches, and every call from now on, with err.
func (s *shared) close(err error) {
	s.mu.Lock()
	s.err = err
	close(s.gone)
	fans := s.fans
	s.fans = map[*model.Event]*fan{}
	s.mu.Unlock()
	for _, f := range fans {
		f.end(err)
		f.cancel()
	}
}

// fan delivers the items of one upstream watch to the watchers of the event. It
// lives as long as that watch, and with it the last value of a field: what is
// no longer subscribed is not known.
type fan struct {
	field  bool
	cancel context.CancelFunc

	mu       sync.Mutex
	watchers []*watcher
	last     Item // current value of a field
	known    bool // last is valid
}

type watcher struct {
	sink  Sink
	ended chan struct{} // closed after err was set
	err   error
}

// add makes w a watcher. Where the value of a field is known already, w gets it
// first; otherwise the upstream brings it.
func (f *fan) add(w *watcher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known {
		it := f.last
		it.Initial, it.Gap = true, 0
		w.sink(it)
	}
	f.watchers = append(f.watchers, w)
}

// remove returns how many watchers are left. The sink of w is not called any
// more once it returned.
func (f *fan) remove(w *watcher) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers = slices.DeleteFunc(f.watchers, func(o *watcher) bool { return o == w })
	return len(f.watchers)
}

func (f *fan) publish(it Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.field {
		f.last, f.known = it, true
	}
	for _, w := range f.watchers {
		w.sink(it)
	}
}

func (f *fan) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.watchers {
		w.err = err
		close(w.ended)
	}
	f.watchers = nil
}
