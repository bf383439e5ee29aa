package stackbench

import (
	"context"
	"fmt"
)

func (w *world) events(ctx context.Context, r *Result) error {
	for _, size := range []uint32{8, 1024} {
		err := w.servers(ctx, fmt.Sprint(size), func() error { return w.eventsOf(ctx, r, size) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eventsOf measures bursts of events of a size, then the pace at which none may be lost.
func (w *world) eventsOf(ctx context.Context, r *Result, size uint32) error {
	what := "events of " + map[uint32]string{8: "8 B", 1024: "1 KiB"}[size] + " to one subscriber"
	rate := func(name string, f func(context.Context) (Arrivals, error)) *measured {
		return &measured{name: name, run: func(ctx context.Context) (float64, error) {
			a, err := f(ctx)
			return a.Rate, err
		}}
	}
	flood := func(name string, instance uint16) *measured {
		return rate(name, func(ctx context.Context) (Arrivals, error) {
			return w.ownEvents(ctx, instance, FloodRequest{Count: burstCount, Size: size})
		})
	}
	own, shared := flood("ours", Own), flood("ours, collected", Shared)
	floor := rate("sendmmsg → recvmmsg in Go", func(ctx context.Context) (Arrivals, error) { return w.bareEvents(ctx, int(size)) })
	bare := rate("sendmmsg → recvmmsg in C", func(ctx context.Context) (Arrivals, error) { return w.cEvents(ctx, int(size)) })
	vs := rate("vsomeip", w.vsomeipEvents)
	if err := w.interleave(ctx, what, vs, bare, floor, own, shared); err != nil {
		return err
	}
	for _, side := range []struct {
		*measured

		how, note string
	}{{own, "each by itself", "one `sendto` each"}, {shared, "collected", collected}} {
		r.row(Row{
			What: what + ", burst, " + side.how, Unit: "events/s", Ours: side.median(),
			Floor: floor.median(), CFloor: bare.median(), Vsomeip: vs.median(), Note: side.note,
		})
		r.Aims.AtLeast(what+", "+side.how+", over sendmmsg → recvmmsg in Go", side.median()/floor.median(), 0.7)
	}
	return w.paced(ctx, r, what, size, 0.7*floor.median())
}

// paced sends collected events at a rate, and counts what is lost.
func (w *world) paced(ctx context.Context, r *Result, what string, size uint32, aim float64) error {
	var lost int
	var dropped uint64
	m := &measured{name: "ours, collected", run: func(ctx context.Context) (float64, error) {
		a, err := w.ownEvents(ctx, Shared, FloodRequest{Count: burstCount, Size: size, Rate: uint32(aim)})
		lost += a.Lost
		dropped += a.Dropped
		return a.Rate, err
	}}
	if err := w.interleave(ctx, what+", paced", m); err != nil {
		return err
	}
	r.row(Row{
		What: what + ", paced at 0.7 × the Go floor, collected", Unit: "events/s", Ours: m.median(), Floor: aim,
		Note: fmt.Sprintf("%d of %d lost, %d counted by the kernel", lost, w.o.Rounds*burstCount, dropped),
	})
	r.Aims.AtMost(what+", lost at that pace", float64(lost), 0)
	return nil
}
