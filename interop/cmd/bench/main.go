// Bench measures the round trips of docs/performance.md and prints its tables.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"carisma.dev/gateway/interop/bench"
	"carisma.dev/gateway/interop/docs"
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
	core := flag.Int("core", 0, "the core that everything runs on")
	flag.Parse()
	if *rounds < 1 || *calls < 100 {
		return errors.New("-rounds is at least 1, -calls at least 100")
	}
	if err := pin(*core); err != nil {
		return err
	}
	if !hosts.Permitted() {
		return errors.New("network namespaces are needed: run it as root")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "carisma-bench-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			err = fmt.Errorf("%w (logs are in %s)", err, dir)
		}
	}()
	bin := filepath.Dir(self)
	result, err := bench.Run(ctx, bench.Options{
		Root:    filepath.Dir(bin),
		Carisma: filepath.Join(bin, "carisma"),
		Envoy:   os.Getenv("CARISMA_ENVOY"),
		Dir:     dir, Rounds: *rounds, Calls: *calls, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	result.WriteMarkdown(&tables)
	if _, err := os.Stdout.Write(tables.Bytes()); err != nil {
		return err
	}
	if *page != "" {
		if err := docs.Replace(*page, "bench", tables.Bytes()); err != nil {
			return err
		}
	}
	if *jsonFile == "" {
		return nil
	}
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(data, '\n'), 0o644)
}

// pinned marks the copy of this program that runs on one core.
const pinned = "CARISMA_BENCH_PINNED"

// pin puts the whole process on one core. The threads that the Go runtime has
// started are not, so the program starts itself again; children inherit it.
func pin(core int) error {
	if os.Getenv(pinned) != "" {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to core %d: %w", core, err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), pinned+"=1"))
}
