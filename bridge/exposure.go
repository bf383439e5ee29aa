package bridge

import (
	"context"
	"errors"
	"time"
)

// settleTime is how long a repeated exposure must last before it is shown as
// such, so that one which fails at once does not flicker.
const settleTime = 200 * time.Millisecond

// exposure is one instance on one network while the instance is up.
type exposure struct {
	shown Exposure      // guarded by the table's mutex
	done  chan struct{} // closed when the adapter has let go of it
}

// expose keeps an instance exposed until ctx ends.
func (t *Table) expose(ctx context.Context, p *port, inst Instance, svc Service, x *exposure) {
	settle := time.AfterFunc(settleTime, func() { t.show(ctx, x, Exposed, "") })
	settle.Stop()
	for pause := retryMin; ctx.Err() == nil; pause = min(2*pause, retryMax) {
		began := time.Now()
		err := p.adapter.Expose(ctx, inst, svc)
		settle.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the adapter ended it")
		}
		var (
			never   *NotExposableError
			standby *StandbyError
			notYet  *NotYetError
			over    <-chan struct{} // closed when it may work, where that is known
		)
		state := Failed
		switch {
		case errors.As(err, &never):
			t.show(ctx, x, Denied, never.Reason)
			return
		case errors.As(err, &standby):
			state, over = Standby, standby.Over
		case errors.As(err, &notYet):
			over = notYet.Over
		}
		if state == Failed {
			t.log.Warn("exposure failed", "name", inst.MeshName(), "network", p.on.String(), "error", err)
		}
		t.show(ctx, x, state, err.Error())
		if over != nil || time.Since(began) > retryMax {
			pause = retryMin
		}
		if over != nil {
			select {
			case <-over:
			case <-ctx.Done():
				return
			}
		} else if !sleep(ctx, pause) {
			return
		}
		settle.Reset(settleTime)
	}
}

// show changes the state of an exposure, unless the instance went meanwhile.
func (t *Table) show(ctx context.Context, x *exposure, s ExposureState, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil || x.shown.State == s && x.shown.Reason == reason {
		return
	}
	x.shown.State, x.shown.Reason, x.shown.Since = s, reason, time.Now()
}
