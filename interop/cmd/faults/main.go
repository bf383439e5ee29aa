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
	jsonFile string
	page     string
	render   bool
	keep     bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "run", "", "play scenarios whose name matches this `expression` only")
	flag.BoolVar(&o.slice, "slice", false, "play the short slice only")
	flag.DurationVar(&o.repeat, "for", 0, "play all again and again for so long, on one vehicle")
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

func (o *options) run() error {
	if o.render {
		return o.renderPage()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := o.play(ctx)
	if report == nil {
		return err
	}
	if o.jsonFile != "" {
		data, jsonErr := json.MarshalIndent(report, "", "  ")
		if jsonErr == nil {
			jsonErr = os.WriteFile(o.jsonFile, append(data, '\n'), 0o644)
		}
		err = errors.Join(err, jsonErr)
	}
	if o.page != "" && err == nil { // the page claims what holds
		err = o.write(report)
	}
	return err
}

func (o *options) write(report *faults.Report) error {
	page, err := report.Page()
	if err != nil {
		return err
	}
	return os.WriteFile(o.page, page, 0o644)
}

func (o *options) renderPage() error {
	data, err := os.ReadFile(o.jsonFile)
	if err != nil {
		return err
	}
	report := new(faults.Report)
	if err := json.Unmarshal(data, report); err != nil {
		return err
	}
	return o.write(report)
}

func (o *options) play(ctx context.Context) (_ *faults.Report, err error) {
	if !hosts.Permitted() {
		return nil, errors.New("network namespaces are needed: run it as root")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	program, _, err := envoy.Find(ctx, os.Getenv(envoy.Variable))
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const source = "interop/faults"
	suite, err := faults.LoadSuite(filepath.Join(source, "scenarios"))
	if err != nil {
		return nil, err
	}
	suite = suite.Only(func(s *faults.Scenario) bool { return (s.Slice || !o.slice) && only.MatchString(s.Name) })
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil || o.keep {
			fmt.Fprintln(os.Stderr, "logs are in", dir)
		} else {
			err = os.RemoveAll(dir)
		}
	}()
	return faults.Run(ctx, faults.Options{
		Vehicle: filepath.Join(source, "vehicle"), Dir: dir, Envoy: program,
		Carisma: filepath.Join(filepath.Dir(self), "carisma"),
	}, suite, o.repeat, progress(os.Stderr))
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
