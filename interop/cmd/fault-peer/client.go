package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

const (
	nativeID     = 0x5101
	nativeEchoID = echoID // as the ECU has it
	nativeTickID = tickID
	callTimeout  = time.Second
	tickGroup    = 1
)

var clientIDs = runtime.Range{First: 0x1200, Last: 0x12ff}

// writer writes lines, one at a time.
type writer struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *writer) write(l record.Line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Encode(l)
}

// callService calls and subscribes until ctx ends: a client that knows of nothing
// but the instance.
func callService(ctx context.Context, service uint16, interval time.Duration, log *slog.Logger) (err error) {
	stack, network, err := component.Start(clientIDs, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	client, err := network.Client(runtime.InstanceKey{Service: service, Instance: 1, Major: 1})
	if err != nil {
		return err
	}
	defer client.Close()
	w := &writer{out: json.NewEncoder(os.Stdout)}
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default:
		}
	}
	subscription, err := client.Subscribe(ctx, runtime.SubscribeConfig{
		Eventgroup: tickGroup, Events: []uint16{nativeTickID},
		OnEvent: func(n runtime.Notification) {
			if len(n.Payload) < 4 {
				return
			}
			turn := &record.Turn{At: time.Now(), Kind: record.Item, Number: binary.BigEndian.Uint32(n.Payload)}
			if err := w.write(record.Line{Turn: turn}); err != nil {
				fail(err)
			}
		},
	})
	if err != nil {
		return err
	}
	defer subscription.Close()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := uint32(1); ; n++ {
		if err := w.write(record.Line{Call: call(ctx, client, n)}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-ticker.C:
		}
	}
}

func call(ctx context.Context, client *runtime.Client, n uint32) *record.Call {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := &record.Call{Began: time.Now(), Code: record.OK}
	out, err := client.Call(ctx, nativeEchoID, false, be(n))
	c.Ended = time.Now()
	var away *runtime.UnavailableError
	switch {
	case errors.As(err, &away):
		c.Code, c.Reason = "UNAVAILABLE", string(away.Reason)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, runtime.ErrTimeout):
		c.Code = "DEADLINE_EXCEEDED"
	case err != nil:
		c.Code = err.Error()
	case out.Code != someip.OK:
		c.Code = out.Code.String()
	case len(out.Payload) != 8 || binary.BigEndian.Uint32(out.Payload) != n:
		c.Code = "wrong answer"
	default:
		c.Program = binary.BigEndian.Uint32(out.Payload[4:])
	}
	return c
}
