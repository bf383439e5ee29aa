package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Report is what a run gave.
type Report struct {
	Parts []*Part `json:"parts"`
	Took  float64 `json:"took_s"`
}

// Part is what a suite gave.
type Part struct {
	About   string       `json:"about"`
	Loads   []LoadReport `json:"loads"`
	Results []*Result    `json:"results"`
	// Before and After are the footprints of the programs after the first scenario
	// and at the end of the run.
	Before map[string]Footprint `json:"before"`
	After  map[string]Footprint `json:"after"`
}

// LoadReport names a load.
type LoadReport struct {
	Name   string `json:"name"`
	Doc    string `json:"doc"`
	Stream bool   `json:"stream"`
}

// Only returns the suite with some of the scenarios.
func (s *Suite) Only(keep func(*Scenario) bool) *Suite {
	only := *s
	only.Scenarios = slices.DeleteFunc(slices.Clone(s.Scenarios), func(sc *Scenario) bool { return !keep(sc) })
	return &only
}

// Run plays suites, each on a vehicle of its own, one scenario after the other as a
// vehicle meets them. After a scenario that could not be played or did not end in
// calm the vehicle is started anew. An error says what does not hold; the report is
// there nevertheless.
func Run(ctx context.Context, o Options, suites []*Suite, told func(*Result)) (*Report, error) {
	report := &Report{}
	began := time.Now()
	var errs []error
	for i, s := range suites {
		with := o
		with.Dir = filepath.Join(o.Dir, fmt.Sprint(i))
		part, err := runSuite(ctx, with, s, told)
		report.Parts = append(report.Parts, part)
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	report.Took = time.Since(began).Seconds()
	return report, errors.Join(errs...)
}

func runSuite(ctx context.Context, o Options, s *Suite, told func(*Result)) (part *Part, err error) {
	part = &Part{About: s.About}
	for _, l := range s.Loads {
		part.Loads = append(part.Loads, LoadReport{l.Name, l.Doc, l.stream()})
	}
	v := &vehicleRun{options: o, suite: s}
	defer func() { err = errors.Join(err, v.stop()) }()
	var errs []error
	for _, sc := range s.Scenarios {
		r, err := v.playCalmly(ctx, sc)
		if err != nil {
			return part, err
		}
		part.Results = append(part.Results, r)
		told(r)
		if v.before == nil && v.rig != nil { // connections are made with the first calls
			if v.before, err = v.rig.footprints(ctx); err != nil {
				return part, err
			}
		}
		if f := r.Failures(); len(f) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", sc.Name, f[0]))
		}
	}
	if v.rig != nil {
		var broken []string
		part.Before = v.before
		if part.After, broken, err = v.rig.Grown(ctx, v.before); err != nil {
			return part, err
		}
		for _, b := range broken {
			errs = append(errs, errors.New(b))
		}
	}
	return part, errors.Join(errs...)
}

// Keep takes over from an earlier run what was not played in this one.
func (r *Report) Keep(earlier *Report, suites []*Suite) {
	for i, s := range suites {
		if i >= len(earlier.Parts) {
			return
		}
		if i >= len(r.Parts) { // the run was ended before
			r.Parts = append(r.Parts, &Part{About: s.About, Loads: earlier.Parts[i].Loads})
		}
		now, old := r.Parts[i], earlier.Parts[i]
		var all []*Result
		for _, sc := range s.Scenarios {
			named := func(r *Result) bool { return r.Name == sc.Name }
			from := now.Results
			if !slices.ContainsFunc(from, named) {
				from = old.Results
			}
			if i := slices.IndexFunc(from, named); i >= 0 {
				from[i].Title, from[i].Note = sc.Title, sc.Note
				all = append(all, from[i])
			}
		}
		if len(all) > len(now.Results) {
			now.Before, now.After = old.Before, old.After
		}
		now.Results = all
	}
}

// vehicleRun is a vehicle that is started when it is needed.
type vehicleRun struct {
	options Options
	suite   *Suite
	rig     *Rig
	before  map[string]Footprint
	starts  int
}

// maxAgain is how often a scenario is played again because the machine was busy.
const maxAgain = 5

// playCalmly plays a scenario until it was not the machine that broke a bound.
func (v *vehicleRun) playCalmly(ctx context.Context, sc *Scenario) (*Result, error) {
	for again := 0; ; again++ {
		r, err := v.play(ctx, sc)
		r.Again = again
		if err != nil || len(r.Failures()) == 0 || !r.busy() || again == maxAgain {
			return r, err
		}
	}
}

func (v *vehicleRun) play(ctx context.Context, sc *Scenario) (*Result, error) {
	if v.rig == nil {
		o := v.options
		v.starts++
		o.Dir = filepath.Join(o.Dir, fmt.Sprint(v.starts))
		var err error
		if v.rig, err = Start(ctx, o, v.suite); err != nil {
			return &Result{}, err
		}
	}
	r, err := v.rig.Play(ctx, sc)
	if err != nil || r.unplayed {
		if err != nil {
			r.Broken = append(r.Broken, err.Error())
		}
		if stopErr := v.stop(); stopErr != nil {
			r.Broken = append(r.Broken, stopErr.Error())
		}
	}
	return r, ctx.Err()
}

func (v *vehicleRun) stop() error {
	if v.rig == nil {
		return nil
	}
	rig := v.rig
	v.rig, v.before = nil, nil
	return rig.Close()
}
