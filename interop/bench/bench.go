package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"carisma.dev/gateway/vehicles/run"
)

// Options say what is measured and with which programs.
type Options struct {
	Root     string // of the checkout
	Carisma  string
	Envoy    string
	Dir      string // for state, logs and sockets
	Rounds   int    // of each path, in turn
	Calls    int    // in each round
	Progress io.Writer
}

// Row is one line of the result: the median over the rounds.
type Row struct {
	Path string `json:"path"`
	Times
	// Rounds are the medians of each round, in microseconds.
	Rounds []float64 `json:"rounds_us"`
	// Ratio is the median over vsomeip's.
	Ratio float64 `json:"ratio"`
}

// Aim is a comparison that the project has set itself.
type Aim struct {
	What  string  `json:"what"`
	Limit float64 `json:"limit"`
	Value float64 `json:"value"` // in round trips of vsomeip
	Met   bool    `json:"met"`
}

// Result is what a run measured.
type Result struct {
	Rows        []Row         `json:"rows"`
	Aims        []Aim         `json:"aims"`
	Transcoding []Transcoding `json:"transcoding"`
}

// The paths.
const (
	pathVsomeip    = "vsomeip client → vsomeip service"
	pathBareUDP    = "bare UDP echo in Go"
	pathOwn        = "our SOME/IP client → our service"
	pathOwnVsomeip = "our SOME/IP client → vsomeip service"
	pathBridge     = "gRPC client → gateway → our ECU"
	pathBridgeVs   = "gRPC client → gateway → vsomeip ECU"
	pathPlain      = "gRPC client → plain gRPC echo"
	pathEgress     = "gRPC client → Envoy → gateway → our ECU"
	pathEgressP    = "gRPC client → Envoy → plain gRPC echo"
	pathTwo        = "gRPC client → Envoy → Envoy → gateway → our ECU"
	pathTwoP       = "gRPC client → Envoy → Envoy → plain gRPC echo"
)

// Run runs the vehicle and measures every path. The caller has pinned the
// process to one core, which the programs of the vehicle inherit.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	transcoded, err := transcoding(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	v := newVehicle(o.Dir, filepath.Join(o.Root, "interop", "bench", "interfaces"))
	r, err := run.New(v, run.Options{Namespaces: true, Dir: o.Dir, Carisma: o.Carisma, Envoy: o.Envoy})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Start(); err != nil {
		return nil, err
	}
	paths, closeClients, err := o.paths(r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeClients()) }()
	measured := map[string][]Times{}
	for round := range o.Rounds {
		for _, p := range paths {
			var t Times
			measure := func(ctx context.Context) (err error) {
				t, err = p.round(ctx)
				return err
			}
			if round == 0 {
				err = retry(ctx, measure)
			} else {
				err = measure(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Fprintf(o.Progress, "round %d  %-50s %7.1f µs\n", round+1, p.name, t.P50)
			measured[p.name] = append(measured[p.name], t)
		}
	}
	result := evaluate(paths, measured)
	result.Transcoding = transcoded
	return result, nil
}

// paths returns what is measured, in the order of the table, and a function
// that closes the connections.
func (o Options) paths(r *run.Runner) ([]path, func() error, error) {
	e := effort{calls: o.Calls, warmup: o.Calls / 10}
	var clients []*client
	closeAll := func() error {
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.conn.Close())
		}
		return errors.Join(errs...)
	}
	var errs []error
	dial := func(host, address string) *client {
		c, err := e.dial(r, host, address)
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		clients = append(clients, c)
		return c
	}
	gateway := dial(rear, filepath.Join(r.Dir(rear), "state", "gateway.sock"))
	plain := dial(rear, filepath.Join(o.Dir, "plain.sock"))
	egress := dial(rear, r.Egress(rear).String())
	far := dial(center, r.Egress(center).String())
	if len(errs) > 0 {
		return nil, nil, errors.Join(append(errs, closeAll())...)
	}
	return []path{
		{pathVsomeip, vsomeipClient(r)},
		{pathBareUDP, e.udpEcho(r)},
		{pathOwn, e.ownClient(r, 1)},
		{pathOwnVsomeip, e.ownClient(r, 2)},
		{pathBridge, gateway.echo("own")},
		{pathBridgeVs, gateway.echo("vsomeip")},
		{pathPlain, plain.plain()},
		{pathEgress, egress.echo("own")},
		{pathEgressP, egress.plain()},
		{pathTwo, far.echo("own")},
		{pathTwoP, far.plain()},
	}, closeAll, nil
}

func evaluate(paths []path, measured map[string][]Times) *Result {
	result := &Result{}
	medians := map[string]float64{}
	for _, p := range paths {
		row := Row{Path: p.name}
		var p99 []float64
		for _, t := range measured[p.name] {
			row.Rounds = append(row.Rounds, t.P50)
			p99 = append(p99, t.P99)
		}
		row.P50, row.P99 = median(row.Rounds), median(p99)
		medians[p.name] = row.P50
		row.Ratio = row.P50 / medians[pathVsomeip]
		result.Rows = append(result.Rows, row)
	}
	base := medians[pathVsomeip]
	for _, a := range []Aim{
		{What: "gRPC → gateway → our ECU", Limit: 0.75, Value: medians[pathBridge] / base},
		{What: "gRPC → gateway → vsomeip ECU", Limit: 1.15, Value: medians[pathBridgeVs] / base},
		{What: "one Envoy: more than plain gRPC over the same hops", Limit: 0.3, Value: (medians[pathEgress] - medians[pathEgressP]) / base},
		{What: "two Envoys: more than plain gRPC over the same hops", Limit: 0.3, Value: (medians[pathTwo] - medians[pathTwoP]) / base},
	} {
		a.Met = a.Value <= a.Limit
		result.Aims = append(result.Aims, a)
	}
	return result
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
