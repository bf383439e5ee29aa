package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"carisma.dev/gateway/vehicles/run"
)

// Row is the round trip of one path: the medians over the rounds.
type Row struct {
	Path string `json:"path"`
	Times
	// Rounds are the medians of each round, in microseconds.
	Rounds []float64 `json:"rounds_us"`
	// Ratio is the median over vsomeip's.
	Ratio float64 `json:"ratio"`
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

// roundTrips measures calls one after the other on every path.
func (o Options) roundTrips(ctx context.Context, r *run.Runner, result *Result) (err error) {
	paths, closeClients, err := o.paths(r)
	if err != nil {
		return err
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
				return fmt.Errorf("%s: %w", p.name, err)
			}
			fmt.Fprintf(o.Progress, "round %d  %-50s %7.1f µs\n", round+1, p.name, t.P50)
			measured[p.name] = append(measured[p.name], t)
		}
	}
	result.roundTrips(paths, measured)
	return nil
}

// paths returns what is measured, in the order of the table, and a function
// that closes the connections.
func (o Options) paths(r *run.Runner) ([]path, func() error, error) {
	e := effort{calls: o.Calls, warmup: o.Calls / 10}
	c := &clients{r: r, effort: e}
	gateway := c.dial(rear, gatewaySocket(r))
	plain := c.dial(rear, plainSocket(r))
	egress := c.dial(rear, r.Egress(rear).String())
	far := c.dial(center, r.Egress(center).String())
	if c.err != nil {
		return nil, nil, errors.Join(c.err, c.close())
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
	}, c.close, nil
}

func gatewaySocket(r *run.Runner) string { return filepath.Join(r.Dir(rear), "state", "gateway.sock") }

// plainSocket is beside the directories of the hosts.
func plainSocket(r *run.Runner) string { return filepath.Join(filepath.Dir(r.Dir(rear)), plainName) }

func (r *Result) roundTrips(paths []path, measured map[string][]Times) {
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
		r.Rows = append(r.Rows, row)
	}
	base := medians[pathVsomeip]
	r.Aims.AtMost("round trip gRPC → gateway → our ECU, over vsomeip's", medians[pathBridge]/base, 0.75)
	r.Aims.AtMost("round trip gRPC → gateway → vsomeip ECU, over vsomeip's", medians[pathBridgeVs]/base, 1.15)
	r.floor("round trip: plain gRPC and our SOME/IP call, one inside the other, over vsomeip's", (medians[pathPlain]+medians[pathOwn])/base)
	r.floor("round trip: plain gRPC and our call of the vsomeip ECU, over vsomeip's", (medians[pathPlain]+medians[pathOwnVsomeip])/base)
	r.floor("Envoys: our SOME/IP call alone, in round trips of vsomeip", medians[pathOwn]/base)
	r.Aims.AtMost("one Envoy: more than plain gRPC over the same hops, in round trips of vsomeip", (medians[pathEgress]-medians[pathEgressP])/base, 0.3)
	r.Aims.AtMost("two Envoys: more than plain gRPC over the same hops, in round trips of vsomeip", (medians[pathTwo]-medians[pathTwoP])/base, 0.3)
}
