package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/codegen/lint"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/scenario"
)

func newCheck() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "check PATH...",
		Short: "Check vehicles, node files, scenarios and interfaces before anything runs",
		Long: `Check reads each path as what it is: a directory with a vehicle.yaml as a
vehicle, a .proto file or another directory as interfaces, scenario*.yaml as a
scenario and any other .yaml as a node file. It prints every mistake with its place and fails if
there is one; warnings alone do not make it fail.`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var c checker
			for _, p := range paths {
				c.path(p)
			}
			return c.report(cmd, &out)
		},
	}
	out.flag(cmd)
	return cmd
}

// problem is one finding as check prints it.
type problem struct {
	Severity string `json:"severity"`
	Text     string `json:"text"` // with the place
}

type checker struct{ problems []problem }

// fail adds an error, or each of the errors that were joined into it.
func (c *checker) fail(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.fail(e)
		}
		return
	}
	c.problems = append(c.problems, problem{"error", err.Error()})
}

func (c *checker) path(path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.fail(err)
	case info.IsDir() && exists(filepath.Join(path, vehicles.FileName)):
		c.vehicle(path)
	case info.IsDir() || strings.HasSuffix(path, ".proto"):
		c.interfaces(path)
	case filepath.Base(path) == vehicles.FileName:
		c.vehicle(filepath.Dir(path))
	case strings.HasPrefix(filepath.Base(path), "scenario"):
		_, err := scenario.Load(path, nil)
		c.fail(err)
	default:
		n, err := config.Load(path)
		c.fail(err)
		if err == nil && len(n.Interfaces) > 0 {
			c.interfaces(n.Interfaces...)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *checker) vehicle(dir string) {
	v, err := vehicles.Load(dir)
	c.fail(err)
	if err != nil {
		return
	}
	if len(v.Interfaces) > 0 {
		c.interfaces(within(dir, v.Interfaces)...)
	}
	if v.Scenario != "" {
		_, err := scenario.Load(filepath.Join(dir, v.Scenario), v)
		c.fail(err)
	}
}

func within(dir string, paths []string) []string {
	var all []string
	for _, p := range paths {
		all = append(all, filepath.Join(dir, p))
	}
	return all
}

func (c *checker) interfaces(paths ...string) {
	set, err := proto.Load(paths...)
	c.fail(err)
	if err != nil {
		return
	}
	for _, f := range lint.Check(set.Interfaces) {
		c.problems = append(c.problems, problem{f.Severity.String(), fmt.Sprintf("%s: %s (%s)", f.Pos, f.Message, f.Rule)})
	}
}

func (c *checker) report(cmd *cobra.Command, out *output) error {
	failed := false
	for _, p := range c.problems {
		failed = failed || p.Severity == "error"
	}
	err := out.print(cmd, struct {
		OK       bool      `json:"ok"`
		Problems []problem `json:"problems"`
	}{!failed, append([]problem{}, c.problems...)}, func(t *table) {
		for _, p := range c.problems {
			t.line(p.Severity + ": " + p.Text)
		}
		if len(c.problems) == 0 {
			t.line("ok")
		}
	})
	if failed {
		err = errors.Join(err, exitError(statusFailed))
	}
	return err
}
