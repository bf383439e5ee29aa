package main

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"time"

	"carisma.dev/gateway/interop/stackbench"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

// serveSOMEIP offers the service of the measurements as instance 1, and if
// asked for as instance 3 with messages that share datagrams.
func serveSOMEIP(ctx context.Context, shared bool) error {
	stack, network, err := start()
	if err != nil {
		return err
	}
	for _, s := range []struct {
		instance, port uint16
	}{{stackbench.Own, 30600}, {stackbench.Shared, 30601}} {
		if s.instance == stackbench.Shared && !shared {
			continue
		}
		if err == nil && s.instance == stackbench.Shared {
			err = network.Deploy(stackbench.SharedDatagrams())
		}
		if err == nil {
			err = serve(network, s.instance, s.port)
		}
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stack.Close())
}

func serve(network *runtime.Network, instance, port uint16) error {
	var o *runtime.Offering
	handler := func(_ context.Context, r *runtime.Request) {
		_ = r.Respond(r.Payload) // an answer that is lost is the client's time-out
		if r.Method == stackbench.Flood && len(r.Payload) == stackbench.FloodRequestSize {
			go floodEvents(o, stackbench.ParseFlood(r.Payload))
		}
	}
	o, err := network.Offer(runtime.ServiceConfig{
		Service: stackbench.Service, Instance: instance, Major: 1, UDPPort: port, TCPPort: port,
		Events: []runtime.EventConfig{
			{ID: stackbench.Event, Eventgroups: []uint16{1}},
			{ID: stackbench.Field, Eventgroups: []uint16{2}, Field: true},
		},
		Handler: runtime.HandlerFunc(handler),
	})
	if err != nil {
		return err
	}
	return o.SetField(stackbench.Field, make([]byte, 8))
}

// floodEvents sends numbered events, at the rate that is asked for or as fast as it can.
func floodEvents(o *runtime.Offering, f stackbench.FloodRequest) {
	payload := make([]byte, f.Size)
	began := time.Now()
	for i := range f.Count {
		binary.BigEndian.PutUint32(payload, i)
		if o.Notify(stackbench.Event, payload) != nil {
			return
		}
		if f.Rate > 0 && i%32 == 31 { // in groups, as timers are coarse
			due := began.Add(time.Duration(float64(i) / float64(f.Rate) * float64(time.Second)))
			for time.Now().Before(due) {
				time.Sleep(time.Until(due))
			}
		}
	}
}

// offerMany offers instances and does nothing.
func offerMany(ctx context.Context, count string) error {
	n, err := strconv.ParseUint(count, 10, 16)
	if err != nil {
		return err
	}
	stack, network, err := start()
	if err != nil {
		return err
	}
	for i := range uint16(n) {
		if err == nil {
			_, err = network.Offer(runtime.ServiceConfig{
				Service: 0x1000 + i, Instance: 1, Major: 1, UDPPort: 30600,
				Events: []runtime.EventConfig{{ID: stackbench.Event, Eventgroups: []uint16{1}}},
			})
		}
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stack.Close())
}

func start() (*runtime.Stack, *runtime.Network, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return component.StartWith(func(c *runtime.NetworkConfig) {
		c.ClientIDs = runtime.Range{First: 0x1400, Last: 0x14ff}
		stackbench.Timing(&c.SD)
	}, log)
}
