// Bench measures what docs/performance.md says of the gateway and prints its tables.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"carisma.dev/gateway/interop/bench"
	"carisma.dev/gateway/interop/docs"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/vehicles/hosts"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	jsonFile := flag.String("json", "", "write the result as JSON to this `file` too")
	page := flag.String("page", "", "put the tables into the section of this Markdown `file` too")
	rounds := flag.Int("rounds", 3, "rounds of each path")
	calls := flag.Int("calls", 10000, "calls in a round")
	only := flag.String("only", "", "measure only the parts whose names match this `expression`: roundtrips, load, changes, starts, footprint, soak, transcoding")
	flag.Parse()
	if *rounds < 1 || *calls < 100 {
		return errors.New("-rounds is at least 1, -calls at least 100")
	}
	if *only != "" && *page != "" {
		return errors.New("-only and -page: the page has all parts")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := bench.Options{Rounds: *rounds, Calls: *calls, Progress: os.Stderr}
	if *only != "" {
		if o.Only, err = regexp.Compile(*only); err != nil {
			return fmt.Errorf("-only: %w", err)
		}
	}
	if err := find(ctx, &o); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "carisma-bench-"); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(o.Dir)
		} else {
			err = fmt.Errorf("%w (logs are in %s)", err, o.Dir)
		}
	}()
	result, err := bench.Run(ctx, o)
	if err != nil {
		*page = "" // it has all parts
	}
	return errors.Join(err, write(result, *page, *jsonFile))
}

// find looks for everything that a run needs, so that none is missed at its end.
func find(ctx context.Context, o *bench.Options) error {
	if !hosts.Permitted() {
		return errors.New("network namespaces are needed: run it as root")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Dir(self)
	o.Root, o.Carisma, o.Vsomeip = filepath.Dir(bin), filepath.Join(bin, "carisma"), os.Getenv("CARISMA_VSOMEIP")
	if o.Envoy, _, err = envoy.Find(ctx, ""); err != nil {
		return err
	}
	if o.Vsomeip == "" {
		return errors.New("no programs on vsomeip: CARISMA_VSOMEIP is not set, interop/vsomeip/build.sh builds them and prints their directory")
	}
	for _, program := range []string{
		o.Carisma, filepath.Join(bin, "bench-peer"), "go",
		filepath.Join(o.Vsomeip, "bench_client"), filepath.Join(o.Vsomeip, "bench_service"), filepath.Join(o.Vsomeip, "bench_starts"),
	} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("make build and interop/vsomeip/build.sh make what is missing: %w", err)
		}
	}
	return nil
}

func write(result *bench.Result, page, jsonFile string) error {
	var tables bytes.Buffer
	result.WriteMarkdown(&tables)
	text := bytes.TrimLeft(tables.Bytes(), "\n")
	if _, err := os.Stdout.Write(text); err != nil {
		return err
	}
	if page != "" {
		if err := docs.Replace(page, "bench", text); err != nil {
			return err
		}
	}
	if jsonFile == "" {
		return nil
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(jsonFile, append(data, '\n'), 0o644)
}
