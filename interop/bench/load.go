package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/vehicles/run"
)

// Load is a rate of one path, the median over the rounds.
type Load struct {
	What    string    `json:"what"`
	Unit    string    `json:"unit"`
	Rate    float64   `json:"rate"`
	Rounds  []float64 `json:"rounds"`
	Vsomeip float64   `json:"over_vsomeip"`
	Plain   float64   `json:"over_plain_grpc"` // grpc-go without gateway
	Note    string    `json:"note,omitempty"`
}

// inFlight is how many calls are outstanding.
const inFlight = 32

// rated is one way of a comparison.
type rated struct {
	what string
	run  func(context.Context) (float64, error)
	note func() string
}

// load measures rates with two cores free and no Envoy in the way.
func (o Options) load(ctx context.Context, r *run.Runner, result *Result) (err error) {
	c := &clients{r: r, effort: effort{calls: 5 * o.Calls, warmup: o.Calls}}
	gateway, plain := c.dial(rear, gatewaySocket(r)), c.dial(rear, plainSocket(r))
	defer func() { err = errors.Join(err, c.close()) }()
	if c.err != nil {
		return c.err
	}
	w, vs := &watcher{client: gateway}, &vsomeipRates{r: r}
	for _, instance := range []string{"own", "shared", "vsomeip"} {
		if err := retry(ctx, func(ctx context.Context) error { return gateway.call(ctx, instance) }); err != nil {
			return err
		}
	}
	calls, err := o.compare(ctx, "calls/s, 32 in flight",
		rated{what: "vsomeip client → vsomeip service", run: vs.rate(clientLoad)},
		rated{what: "gRPC client → plain gRPC echo", run: func(ctx context.Context) (float64, error) {
			stub := benchv1.NewPlainClient(plain.conn)
			return plain.together(ctx, func(ctx context.Context) error {
				_, err := stub.Echo(ctx, &benchv1.PlainEchoRequest{Value: 42})
				return err
			})
		}},
		rated{what: "our SOME/IP client → our ECU", run: c.ownRate(r, 1)},
		rated{what: "gRPC client → gateway → our ECU", run: gateway.echoes("own")},
		rated{what: "gRPC client → gateway → vsomeip ECU", run: gateway.echoes("vsomeip")},
	)
	if err != nil {
		return err
	}
	events, err := o.compare(ctx, "events/s to one watcher",
		rated{what: "vsomeip service → vsomeip client, a burst", run: vs.rate(clientBurst), note: vs.note},
		rated{what: "plain gRPC stream → gRPC client", run: plain.ticks},
		rated{what: "our ECU → gateway → gRPC client, nothing lost", run: w.lossless, note: w.note},
	)
	if err != nil {
		return err
	}
	result.Loads = append(append(result.Loads, calls...), events...)
	vsomeip, plainCall, own, bridged := calls[0], calls[1], calls[2], calls[3]
	result.Aims.AtLeast("calls in flight through the gateway, over vsomeip's", bridged.Vsomeip, 2)
	result.Aims.AtLeast("calls in flight through the gateway, over plain grpc-go's", bridged.Plain, 0.6)
	both := 1 / (1/plainCall.Rate + 1/own.Rate) // of processor time, which is what there is too little of
	result.floor("calls in flight: plain gRPC and our SOME/IP call, one inside the other, over vsomeip's", both/vsomeip.Rate)
	result.floor("calls in flight: plain gRPC and our SOME/IP call, one inside the other, over plain grpc-go's", both/plainCall.Rate)
	result.floor("events: a plain gRPC stream over vsomeip's events", events[1].Vsomeip)
	result.Aims.AtLeast("events through the gateway, over vsomeip's", events[2].Vsomeip, 5)
	return nil
}

// compare measures each way in turn, in rounds. The first is vsomeip's, the second
// that of plain grpc-go.
func (o Options) compare(ctx context.Context, unit string, ways ...rated) ([]Load, error) {
	loads := make([]Load, len(ways))
	for round := range o.Rounds {
		for i, w := range ways {
			v, err := w.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.what, err)
			}
			fmt.Fprintf(o.Progress, "round %d  %-50s %9.0f %s\n", round+1, w.what, v, unit)
			loads[i].Rounds = append(loads[i].Rounds, v)
		}
	}
	for i := range ways {
		loads[i].Rate = median(loads[i].Rounds)
	}
	for i, w := range ways {
		l := &loads[i]
		l.What, l.Unit = w.what, unit
		l.Vsomeip, l.Plain = l.Rate/loads[0].Rate, l.Rate/loads[1].Rate
		if w.note != nil {
			l.Note = w.note()
		}
	}
	return loads, nil
}

// vsomeipRates are of clients on vsomeip.
type vsomeipRates struct {
	r        *run.Runner
	expected int
	most     int // of these, the most that were lost in a burst
}

// rate runs a client on vsomeip that prints a rate.
func (v *vsomeipRates) rate(component string) func(context.Context) (float64, error) {
	return func(context.Context) (float64, error) {
		var out bytes.Buffer
		if err := v.r.Process(component).Run(&out); err != nil {
			return 0, err
		}
		var t struct {
			Calls    float64 `json:"calls_per_s"`
			Events   float64 `json:"events_per_s"`
			Expected int     `json:"expected"`
			Arrived  int     `json:"events"`
		}
		if err := json.Unmarshal(out.Bytes(), &t); err != nil || t.Calls+t.Events == 0 {
			return 0, fmt.Errorf("output of the client on vsomeip: %q: %w", out.String(), err)
		}
		v.expected, v.most = t.Expected, max(v.most, t.Expected-t.Arrived)
		return t.Calls + t.Events, nil
	}
}

func (v *vsomeipRates) note() string {
	return fmt.Sprintf("of %d up to %d are lost", v.expected, v.most)
}

// call calls the echo of an instance once.
func (c *client) call(ctx context.Context, instance string) error {
	_, err := benchv1.NewEchoClient(c.conn).Echo(toInstance(ctx, instance), &benchv1.EchoEchoRequest{Value: 42})
	return err
}

func toInstance(ctx context.Context, instance string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, api.InstanceHeader, instance)
}

// echoes measures calls of an instance.
func (c *client) echoes(instance string) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		stub := benchv1.NewEchoClient(c.conn)
		return c.together(toInstance(ctx, instance), func(ctx context.Context) error {
			_, err := stub.Echo(ctx, &benchv1.EchoEchoRequest{Value: 42})
			return err
		})
	}
}

// together returns the calls a second with several outstanding.
func (e effort) together(ctx context.Context, call func(context.Context) error) (float64, error) {
	var begun atomic.Int64
	var began time.Time
	var warm sync.Once
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	for range inFlight {
		work.Go(func() {
			for failed.Load() == nil {
				n := begun.Add(1)
				if n > int64(e.warmup) {
					warm.Do(func() { began = time.Now() })
				}
				if n > int64(e.warmup+e.calls) {
					return
				}
				if err := call(ctx); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(e.calls) / time.Since(began).Seconds(), nil
}
