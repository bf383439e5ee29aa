package someipadapter

import (
	"bytes"
	"context"
	"errors"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/someip/runtime"
)

// forward sends the items of an event to its subscribers. An event is watched
// while there are some, a field for as long as the instance is offered: it has
// a value before the first subscriber comes.
func (x *exposed) forward(ctx context.Context, c *eventCodec) {
	f := forwarder{exposed: x, codec: c}
	watch := func(ctx context.Context) {
		bridge.KeepWatching(ctx, x.svc, c.Event, f.item, func(err error) {
			x.adapter.log.Debug("watch ended", "instance", x.key, "event", c.Name, "error", err)
		})
	}
	if c.Field != nil {
		watch(ctx)
	} else {
		x.demands[c.SOMEIP.ID].while(ctx, watch)
	}
}

type forwarder struct {
	*exposed
	codec   *eventCodec
	payload []byte // the last one
	sent    bool
	failing bool
}

// item takes one item, on one goroutine at a time.
func (f *forwarder) item(it bridge.Item) {
	before := len(f.payload)
	all, err := f.codec.args.ToSOMEIP(f.payload, it.Payload)
	if err == nil {
		payload := all[before:]
		// A watch that was begun anew brings the value of the field again.
		if it.Initial && f.sent && bytes.Equal(payload, all[:before]) {
			return
		}
		err = f.offering.Notify(f.codec.SOMEIP.ID, payload)
		f.payload = append(all[:0], payload...)
		f.sent = true
	}
	if failing := err != nil && !errors.Is(err, runtime.ErrClosed); failing != f.failing {
		f.failing = failing
		if failing {
			f.adapter.log.Warn("event not sent", "instance", f.key, "event", f.codec.Name, "error", err)
		}
	}
}
