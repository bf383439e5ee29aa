package scenario

import (
	"context"
	"fmt"
	"time"
)

// repeated calls a method until it is asked to finish. Only its goroutine writes
// what it found, which is read once done is closed.
type repeated struct {
	finish chan struct{}
	done   chan struct{}
	cancel context.CancelFunc

	calls, failed int
	first         error // why the first call failed that did
	complete      bool  // the last call was made
}

// repeatTimeout bounds each call: one that hangs has failed.
const repeatTimeout = 5 * time.Second

func startRepeated(ctx context.Context, c *client, r *Repeat) *repeated {
	ctx, cancel := context.WithCancel(ctx)
	w := &repeated{finish: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(w.done)
		next := time.NewTicker(r.Every)
		defer next.Stop()
		for last := false; !last && ctx.Err() == nil; {
			// The last call begins after all that happened meanwhile.
			select {
			case <-w.finish:
				last = true
			case <-next.C:
			}
			w.calls++
			if err := r.once(ctx, c); err != nil {
				w.failed++
				if w.first == nil {
					w.first = fmt.Errorf("call %d: %w", w.calls, err)
				}
			}
			w.complete = last
		}
	}()
	return w
}

func (r *Repeat) once(ctx context.Context, c *client) error {
	ctx, cancel := context.WithTimeout(ctx, repeatTimeout)
	defer cancel()
	response, err := c.call(ctx, &r.Target)
	if err == nil && !sameJSON(response, r.Response.text) {
		err = fmt.Errorf("expected %s, got %s", r.Response.text, response)
	}
	return err
}

// end makes the last call and returns an error if one has failed, or ctx ended
// before it was answered.
func (w *repeated) end(ctx context.Context) error {
	close(w.finish)
	select {
	case <-w.done:
	case <-ctx.Done():
		w.close()
	}
	if w.failed > 0 {
		return fmt.Errorf("%d of %d calls failed, the first was %w", w.failed, w.calls, w.first)
	}
	if !w.complete {
		return fmt.Errorf("the last call was not made: %w", context.Cause(ctx))
	}
	return nil
}

// close ends the calls and waits for that.
func (w *repeated) close() {
	w.cancel()
	<-w.done
}

func (p *Player) repeat(ctx, step context.Context, r *Repeat) ([]string, error) {
	c, err := p.client(r.Target.Host)
	if err != nil {
		return nil, err
	}
	// Reflection is asked once, here: it is no part of the calls.
	if _, err := c.method(step, r.Target.Method); err != nil {
		return nil, err
	}
	p.repeats[r.As] = startRepeated(ctx, c, r)
	return []string{describe(&r.Target)}, nil
}

func (p *Player) finish(ctx context.Context, f *Finish) ([]string, error) {
	w, ok := p.repeats[f.Of]
	if !ok {
		return nil, fmt.Errorf("no calls %q are being made", f.Of)
	}
	delete(p.repeats, f.Of)
	defer w.close()
	if err := w.end(ctx); err != nil {
		return nil, err
	}
	return []string{f.Of + ": none of the calls failed"}, nil
}
