package bridge

import (
	"context"

	"carisma.dev/gateway/codegen/model"
)

// sharedSubscribable is an imported service with streams that take a request,
// which its watchers do not share.
type sharedSubscribable struct {
	*shared
	subscribable Subscribable
}

var _ Subscribable = sharedSubscribable{}

// Subscribe implements [Subscribable].
func (s sharedSubscribable) Subscribe(ctx context.Context, e *model.Event, in []byte, opened func(), sink Sink) error {
	select {
	case <-s.gone:
		return s.err
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.gone:
			cancel()
		case <-over:
		}
	}()
	err := s.subscribable.Subscribe(ctx, e, in, opened, sink)
	select {
	case <-s.gone:
		return s.err
	default:
		return err
	}
}

// service returns the service for exposers.
func (s *shared) service() Service {
	if x, ok := s.svc.(Subscribable); ok {
		return sharedSubscribable{s, x}
	}
	return s
}
