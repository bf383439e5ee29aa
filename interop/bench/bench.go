package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"carisma.dev/gateway/interop/aims"
	"carisma.dev/gateway/interop/cores"
	"carisma.dev/gateway/interop/faults"
	"carisma.dev/gateway/vehicles/run"
)

// Options say what is measured and with which programs.
type Options struct {
	Root     string // of the checkout
	Carisma  string
	Envoy    string
	Vsomeip  string         // directory of the programs on vsomeip
	Dir      string         // for state, logs and sockets
	Only     *regexp.Regexp // names of the parts that are measured; nil for all
	Rounds   int            // of each path, in turn
	Calls    int            // in each round
	Progress io.Writer
}

// Result is what a run measured.
type Result struct {
	// Busy is how many programs the machine ran or had waiting when the run began: its
	// load average over a minute, 0 where it does not tell.
	Busy        float64       `json:"load_average"`
	Rows        []Row         `json:"rows"`
	Loads       []Load        `json:"loads"`
	Changes     []Change      `json:"changes"`
	Starts      []Start       `json:"starts"`
	Footprints  []Footprint   `json:"footprints"`
	Soak        *faults.Soak  `json:"soak,omitempty"`
	Aims        aims.Aims     `json:"aims"`
	Floors      []Floor       `json:"floors"`
	Transcoding []Transcoding `json:"transcoding"`
}

// Floor is what an aim compares with, of the parts that the gateway is made of and
// that it cannot do without.
type Floor struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
}

func (r *Result) floor(what string, value float64) {
	r.Floors = append(r.Floors, Floor{what, value})
}

// part is some of the measurements, on a vehicle of its own, so that none inherits
// the state of another.
type part struct {
	name  string
	cores int
	run   func(context.Context, *run.Runner, *Result) error
}

func (o Options) parts() []part {
	return []part{
		{"roundtrips", 1, o.roundTrips},
		{"load", 2, o.load},
		{"changes", 2, o.changes},
		{"starts", 2, o.starts},
		{"footprint", 2, o.footprint},
	}
}

// attempts is how often a part is begun before the run gives up: what else a
// machine does may break one.
const attempts = 2

// Run measures every part. Each has the first cores of the machine to itself, which
// the programs of the vehicle inherit. With an error the result has the other parts.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &Result{Busy: loadAverage()}
	var errs []error
	for _, p := range o.parts() {
		if o.Only != nil && !o.Only.MatchString(p.name) {
			continue
		}
		for attempt := 1; ; attempt++ {
			attempted := *r
			err := o.measure(ctx, p, attempt, &attempted)
			if err == nil {
				*r = attempted
				break
			}
			err = fmt.Errorf("%s: %w", p.name, err)
			if attempt == attempts || ctx.Err() != nil {
				errs = append(errs, err)
				break
			}
			fmt.Fprintln(o.Progress, "once more:", err)
		}
	}
	if o.Only == nil || o.Only.MatchString("soak") {
		soak, err := faults.ReadSoak(filepath.Join(o.Root, soakFile))
		r.Soak = soak
		r.judgeSoak()
		errs = append(errs, err)
	}
	if o.Only == nil || o.Only.MatchString("transcoding") {
		rows, err := transcoding(ctx, o.Root)
		r.Transcoding = rows
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

func loadAverage() (load float64) {
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(data), &load) // 0 if it is no number
	}
	return load
}

// measure runs a part on a vehicle of its own.
func (o Options) measure(ctx context.Context, p part, attempt int, r *Result) (err error) {
	use, err := cores.First(p.cores)
	if err != nil {
		return err
	}
	release, err := cores.Pin(use...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	o.Dir = filepath.Join(o.Dir, fmt.Sprintf("%s%d", p.name, attempt))
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		return err
	}
	v := newVehicle(o.Dir, filepath.Join(o.Root, "interop", "bench", "interfaces"), o.Vsomeip)
	runner, err := run.New(v, run.Options{Namespaces: true, Dir: o.Dir, Carisma: o.Carisma, Envoy: o.Envoy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	if err := runner.Start(); err != nil {
		return err
	}
	return p.run(ctx, runner, r)
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value that a part q of all does not exceed.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
