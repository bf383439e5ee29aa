package main

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

// Ids of faults.v1.Probe.
const (
	probeID    = 0x4101
	echoID     = 0x0001
	holdID     = 0x0002
	burstID    = 0x0003
	getLevelID = 0x0010
	setLevelID = 0x0011
	tickID     = 0x8001
	levelID    = 0x8002
	bulkID     = 0x8003
)

// ecuIDs is the block of an ECU that calls nobody: it stands for the host.
var ecuIDs = runtime.Range{First: 0x1400, Last: 0x14ff}

// port of both transports: each ECU has a host of its own.
const port = 30509

// probe is an ECU.
type probe struct {
	offering *runtime.Offering
	log      *slog.Logger
	work     sync.WaitGroup
	level    atomic.Uint32
	ticks    uint32
}

func serveECU(ctx context.Context, instance uint16, interval time.Duration, log *slog.Logger) (err error) {
	stack, network, err := component.Start(ecuIDs, log)
	if err != nil {
		return err
	}
	p := &probe{log: log}
	defer func() {
		err = errors.Join(err, stack.Close())
		p.work.Wait()
	}()
	ready := make(chan struct{}) // requests wait until the offering is known
	p.offering, err = network.Offer(runtime.ServiceConfig{
		Service: probeID, Instance: instance, Major: 1, UDPPort: port, TCPPort: port,
		Methods: []runtime.MethodConfig{{ID: echoID}, {ID: holdID}, {ID: burstID}, {ID: getLevelID}, {ID: setLevelID}},
		Events: []runtime.EventConfig{
			{ID: tickID, Eventgroups: []uint16{1}},
			{ID: levelID, Eventgroups: []uint16{2}, Field: true},
			{ID: bulkID, Eventgroups: []uint16{3}, Reliable: true},
		},
		Handler: runtime.HandlerFunc(func(ctx context.Context, r *runtime.Request) {
			<-ready
			p.serve(ctx, r)
		}),
	})
	close(ready)
	if err != nil {
		return err
	}
	p.notify(levelID, 0)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.ticks++
			p.notify(tickID, p.ticks)
		}
	}
}

// serve answers a request. An answer that cannot be sent is the client's time-out.
func (p *probe) serve(_ context.Context, r *runtime.Request) {
	var n uint32
	if len(r.Payload) >= 4 {
		n = binary.BigEndian.Uint32(r.Payload)
	} else if r.Method != getLevelID {
		_ = r.Fail(someip.MalformedMessage, true, nil)
		return
	}
	switch r.Method {
	case echoID:
		_ = r.Respond(be(n, uint32(os.Getpid())))
	case holdID:
		p.work.Go(func() {
			time.Sleep(time.Duration(n) * time.Millisecond) // what it is for
			_ = r.Respond(be(n))
		})
	case burstID:
		_ = r.Respond(be(n))
		p.work.Go(func() { p.burst(n) })
	case getLevelID:
		_ = r.Respond(be(p.level.Load()))
	case setLevelID:
		p.level.Store(n)
		_ = r.Respond(be(n))
		p.notify(levelID, n)
	}
}

// filling is the rest of a Bulk event, behind its length.
var filling = make([]byte, 100)

// A burst is made of portions, so that it is the network that carries it: what a
// server's own queue cannot take it drops, and nobody is told.
const (
	portion      = 500
	portionPause = 5 * time.Millisecond
)

func (p *probe) burst(count uint32) {
	payload := append(be(0, uint32(len(filling))), filling...)
	for n := range count {
		binary.BigEndian.PutUint32(payload, n+1)
		if err := p.offering.Notify(bulkID, payload); err != nil {
			p.log.Warn("bulk not sent", "number", n+1, "error", err)
			return
		}
		if n%portion == portion-1 {
			time.Sleep(portionPause)
		}
	}
}

func (p *probe) notify(event uint16, n uint32) {
	if err := p.offering.Notify(event, be(n)); err != nil {
		p.log.Warn("event not sent", "event", event, "error", err)
	}
}

func be(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
