package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/interop/wait"
)

// Soak is what a long run on one vehicle gave: whether anything piles up in
// programs that live through fault after fault.
type Soak struct {
	Took   float64 `json:"took_s"`
	Rounds int     `json:"rounds"`
	Faults int     `json:"faults"` // scenarios played
	// Busy is how many of them broke a bound while other work filled the machine,
	// Broken what did not hold on a calm one.
	Busy     int            `json:"busy"`
	Broken   []string       `json:"broken,omitempty"`
	Programs []*SoakProgram `json:"programs"`
}

// SoakProgram is a program that lived to the end of the run.
type SoakProgram struct {
	Name  string    `json:"name"`
	Lived float64   `json:"lived_s"`
	Start Footprint `json:"start"` // the most of each in the first quarter of its life
	End   Footprint `json:"end"`   // at the end
	Most  Footprint `json:"most"`  // at any time
}

// ReadSoak returns the result of a long run that is on file, nil where there is none.
func ReadSoak(path string) (*Soak, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(Soak)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// SoakSlack is how much anonymous memory a program may have more at the end than
// at the start: Go's heap differs by that from collection to collection.
const SoakSlack = 1.1

// Failures lists what piled up, and the bounds that were broken.
func (s *Soak) Failures() []string {
	all := slices.Clone(s.Broken)
	if len(s.Programs) == 0 {
		all = append(all, "no program was measured")
	}
	for _, p := range s.Programs {
		if p.End.Descriptors > p.Start.Descriptors || p.End.Goroutines > p.Start.Goroutines ||
			float64(p.End.AnonKiB) > SoakSlack*float64(p.Start.AnonKiB) {
			all = append(all, fmt.Sprintf("%s has %+v, it had %+v", p.Name, p.End, p.Start))
		}
	}
	return all
}

// RunSoak plays a suite on one vehicle again and again for a time. The first round
// has all of it. Then no gateway and no proxy is killed, and in the second half no
// control plane either, so that whatever they leave behind stays to be seen. An
// error says that the run came to no result.
func RunSoak(ctx context.Context, o Options, s *Suite, length time.Duration, told func(*Result)) (soak *Soak, err error) {
	soak = &Soak{}
	v := &vehicleRun{options: o, suite: s}
	defer func() { err = errors.Join(err, v.stop()) }()
	began := time.Now()
	var samples []sample
	for soak.Rounds == 0 || time.Since(began) < length {
		soak.Rounds++
		for _, sc := range s.Scenarios {
			if soak.Rounds > 1 && sc.ends("/gateway", "/envoy") || time.Since(began) > length/2 && sc.ends("/control-plane") {
				continue
			}
			r, err := v.playCalmly(ctx, sc)
			if err != nil {
				return soak, err
			}
			told(r)
			soak.count(r)
			if v.rig == nil {
				continue
			}
			if foot, err := v.rig.resting(ctx); err == nil { // none while a program is away
				samples = append(samples, sample{time.Now(), foot})
			}
		}
	}
	soak.Took = time.Since(began).Seconds()
	soak.Programs = lives(samples)
	return soak, nil
}

func (s *Soak) count(r *Result) {
	s.Faults++
	switch f := r.Failures(); {
	case len(f) == 0:
	case r.busy():
		s.Busy++
	default:
		s.Broken = append(s.Broken, r.Title+": "+f[0])
	}
}

// ends reports whether a program of one of the kinds is ended by the scenario.
func (sc *Scenario) ends(kinds ...string) bool {
	return slices.ContainsFunc(sc.Steps, func(s Step) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool {
			return strings.HasSuffix(s.Kill, kind) || strings.HasSuffix(s.Stop, kind)
		})
	})
}

// sample is the footprint of the vehicle at a moment.
type sample struct {
	at   time.Time
	foot map[string]Footprint
}

const (
	restLooks    = 5
	restInterval = 100 * time.Millisecond
)

// resting returns the least that each program takes within a moment, which is what
// it takes beside the calls that are just under way.
func (g *Rig) resting(ctx context.Context) (map[string]Footprint, error) {
	least, err := g.footprints(ctx)
	for range restLooks - 1 {
		if err != nil {
			break
		}
		if err = wait.For(ctx, restInterval); err != nil {
			break
		}
		var now map[string]Footprint
		now, err = g.footprints(ctx)
		for name, f := range now {
			least[name] = f.with(least[name], func(a, b int) int { return min(a, b) })
		}
	}
	return least, err
}

// with joins two footprints, each value by itself; the process is f's.
func (f Footprint) with(o Footprint, join func(a, b int) int) Footprint {
	return Footprint{f.PID, join(f.AnonKiB, o.AnonKiB), join(f.Descriptors, o.Descriptors), join(f.Goroutines, o.Goroutines)}
}

// lives sums up the samples of the processes that lived to the end.
func lives(samples []sample) (programs []*SoakProgram) {
	if len(samples) == 0 {
		return nil
	}
	most := func(a, b int) int { return max(a, b) }
	last := samples[len(samples)-1]
	for _, name := range slices.Sorted(maps.Keys(last.foot)) {
		end := last.foot[name]
		first := slices.IndexFunc(samples, func(s sample) bool { return s.foot[name].PID == end.PID })
		lived := last.at.Sub(samples[first].at)
		p := &SoakProgram{Name: name, Lived: lived.Seconds(), End: end, Start: samples[first].foot[name], Most: end}
		for _, s := range samples[first:] {
			p.Most = p.Most.with(s.foot[name], most)
			if s.at.Sub(samples[first].at) <= lived/4 {
				p.Start = p.Start.with(s.foot[name], most)
			}
		}
		programs = append(programs, p)
	}
	return programs
}
