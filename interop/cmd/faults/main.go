// Faults plays the scenarios of interop/faults and writes what they measured. It
// fails if a bound does not hold.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"carisma.dev/gateway/interop/faults"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/vehicles/hosts"
)

type options struct {
	only     string
	slice    bool
	repeat   time.Duration
	soakFile string
	jsonFile string
	page     string
	render   bool
	keep     bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "run", "", "play scenarios whose name matches this `expression` only; of the others the JSON file keeps what it has")
	flag.BoolVar(&o.slice, "slice", false, "play the short slice only")
	flag.DurationVar(&o.repeat, "for", 0, "play again and again for so long, on one vehicle, and write what piles up to the -soak file")
	flag.StringVar(&o.soakFile, "soak", "interop/faults/soak.json", "the result of a long run, which the page shows: a `file`")
	flag.StringVar(&o.jsonFile, "json", "", "write the results as JSON to this `file`")
	flag.StringVar(&o.page, "page", "", "write the results as a page to this `file`")
	flag.BoolVar(&o.render, "render", false, "play nothing, make the page from the JSON file")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and state")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func (o *options) run() (err error) {
	if o.render {
		return o.renderPage()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	with, all, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	suites, err := o.choose(all)
	if err != nil {
		return err
	}
	if with.Dir, err = os.MkdirTemp("", "faults-"); err != nil {
		return err
	}
	defer func() {
		if err != nil || o.keep {
			fmt.Fprintln(os.Stderr, "logs are in", with.Dir)
		} else {
			err = os.RemoveAll(with.Dir)
		}
	}()
	if o.repeat > 0 {
		return o.soak(ctx, with, suites[0])
	}
	report, err := faults.Run(ctx, with, suites, progress(os.Stderr))
	if o.only != "" && o.jsonFile != "" {
		earlier := new(faults.Report)
		if jsonErr := readJSON(o.jsonFile, earlier); jsonErr != nil && !errors.Is(jsonErr, fs.ErrNotExist) {
			return errors.Join(err, jsonErr)
		}
		report.Keep(earlier, all)
	}
	if o.jsonFile != "" {
		err = errors.Join(err, writeJSON(o.jsonFile, report))
	}
	if o.page != "" && err == nil { // the page claims what holds
		err = o.write(report)
	}
	return err
}

// prepare reads the scenarios and finds the programs.
func (o *options) prepare(ctx context.Context) (with faults.Options, suites []*faults.Suite, err error) {
	if !hosts.Permitted() {
		return with, nil, errors.New("network namespaces are needed: run it as root")
	}
	if with.Envoy, _, err = envoy.Find(ctx, os.Getenv(envoy.Variable)); err != nil {
		return with, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return with, nil, err
	}
	with.Carisma = filepath.Join(filepath.Dir(self), "carisma")
	suites, err = faults.LoadSuites("interop/faults")
	return with, suites, err
}

// choose returns the suites with those scenarios that are asked for.
func (o *options) choose(all []*faults.Suite) (suites []*faults.Suite, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		suites = append(suites, s.Only(func(s *faults.Scenario) bool { return (s.Slice || !o.slice) && only.MatchString(s.Name) }))
	}
	return suites, nil
}

func (o *options) soak(ctx context.Context, with faults.Options, suite *faults.Suite) error {
	soak, err := faults.RunSoak(ctx, with, suite, o.repeat, progress(os.Stderr))
	if err != nil {
		return err
	}
	err = writeJSON(o.soakFile, soak)
	for _, f := range soak.Failures() {
		err = errors.Join(err, errors.New(f))
	}
	return err
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (o *options) renderPage() error {
	report := new(faults.Report)
	if err := readJSON(o.jsonFile, report); err != nil {
		return err
	}
	return o.write(report)
}

// write makes the page of a report and of the long run, if there is one on file.
func (o *options) write(report *faults.Report) error {
	soak, err := faults.ReadSoak(o.soakFile)
	if err != nil {
		return err
	}
	page, err := report.Page(soak)
	if err != nil {
		return err
	}
	return os.WriteFile(o.page, page, 0o644)
}

// progress prints each scenario as it ends.
func progress(w io.Writer) func(*faults.Result) {
	return func(r *faults.Result) {
		failures := r.Failures()
		verdict := "ok  "
		if len(failures) > 0 {
			verdict = "FAIL"
		}
		fmt.Fprintf(w, "%s  %-60s %5.1f s, again %d, stalled %.0f ms, pressure %.2f\n", verdict, r.Title, r.Took, r.Again, r.Stalled, r.Pressure)
		for _, s := range r.Seen {
			if s.Failed > 0 || s.Concerned {
				fmt.Fprintf(w, "      %-13s %5d, failed %4d %v noticed %.0f served %.0f waits %.0f ms  %q\n",
					s.Load, s.Count, s.Failed, s.Codes, s.Noticed, s.Served, s.Waits, s.Reasons)
			}
		}
		for _, f := range failures {
			fmt.Fprintln(w, "      !", f)
		}
	}
}
