// Command matrix writes the interop matrix in docs/interop.md from the results of a
// run. It fails if a cell is empty and no reason is given for it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"carisma.dev/gateway/interop/matrix"
)

func main() {
	root := flag.String("C", ".", "root of the project")
	check := flag.Bool("check", false, "write nothing, fail if the page is out of date")
	flag.Parse()
	if err := run(*root, flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func run(root, results string, check bool) error {
	f, err := os.Open(results)
	if err != nil {
		return err
	}
	all, err := matrix.Read(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "interop.md")
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := all.Page(old)
	switch {
	case err != nil:
		return err
	case string(page) == string(old):
		return nil
	case check:
		return fmt.Errorf("%s is out of date: run 'make matrix'", path)
	}
	return os.WriteFile(path, page, 0o644)
}
