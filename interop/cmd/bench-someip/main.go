// Bench-someip measures the SOME/IP stack for docs/performance.md and prints its tables.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"carisma.dev/gateway/interop/docs"
	"carisma.dev/gateway/interop/stackbench"
	"carisma.dev/gateway/vehicles/hosts"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-someip:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	jsonFile := flag.String("json", "", "put the result into the member someip of this JSON `file` too")
	page := flag.String("page", "", "put the tables into the section of this Markdown `file` too")
	rounds := flag.Int("rounds", 3, "rounds of each measurement")
	calls := flag.Int("calls", 10000, "calls in a round")
	idle := flag.Int("idle", 60, "seconds that an idle process is watched")
	core := flag.Int("core", 0, "the core for what is pinned")
	only := flag.String("only", "", "measure these `parts` only, separated by commas: "+strings.Join(stackbench.Parts(), ", "))
	profiles := flag.String("profiles", "", "leave CPU profiles of our programs in this `directory`; times are longer then")
	flag.Parse()
	if *rounds < 1 || *calls < 100 || *idle < 1 {
		return errors.New("-rounds and -idle are at least 1, -calls at least 100")
	}
	if *only != "" && *page != "" {
		return errors.New("-only and -page: the page has all parts")
	}
	parts := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, p := range parts {
		if !slices.Contains(stackbench.Parts(), p) {
			return fmt.Errorf("-only: there is no part %q", p)
		}
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
	result, err := stackbench.Run(ctx, stackbench.Options{
		Root: filepath.Dir(filepath.Dir(self)), Vsomeip: os.Getenv("CARISMA_VSOMEIP"), Dir: dir,
		Core: *core, Rounds: *rounds, Calls: *calls, Idle: *idle, Progress: os.Stderr,
		Only: parts, Profiles: *profiles,
	})
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	result.WriteMarkdown(&tables)
	text := bytes.TrimLeft(tables.Bytes(), "\n")
	if _, err := os.Stdout.Write(text); err != nil {
		return err
	}
	if *page != "" {
		if err := docs.Replace(*page, "someip", text); err != nil {
			return err
		}
	}
	if *jsonFile == "" {
		return nil
	}
	return addMember(*jsonFile, result)
}

// addMember puts the result beside what the other measurements left in a file.
func addMember(file string, result *stackbench.Result) error {
	members := map[string]any{}
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(old, &members); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	members["someip"] = result
	data, err := json.MarshalIndent(members, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}
