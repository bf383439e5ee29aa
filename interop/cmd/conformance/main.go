// Command conformance writes docs/conformance.md, and the table of cases in
// docs/interop.md, from the rules of the protocol and the tests that cite them. It
// fails if a rule is shown by no test and gives no reason.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"carisma.dev/gateway/interop/conformance"
)

func main() {
	root := flag.String("C", ".", "root of the project")
	check := flag.Bool("check", false, "write nothing, fail if a page is out of date")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	rules, err := conformance.Load()
	if err != nil {
		return err
	}
	found, err := conformance.Scan(os.DirFS(root))
	if err != nil {
		return err
	}
	interop := filepath.Join(root, "docs", "interop.md")
	old, err := os.ReadFile(interop)
	if err != nil {
		return err
	}
	cases, err := rules.CasesPage(old, found)
	if err != nil {
		return err
	}
	for path, page := range map[string][]byte{
		filepath.Join(root, "docs", "conformance.md"): rules.Page(found),
		interop: cases,
	} {
		if err := put(path, page, check); err != nil {
			return err
		}
	}
	return rules.Check(found)
}

// put writes a page if it has changed, or says that it should have been.
func put(path string, page []byte, check bool) error {
	old, err := os.ReadFile(path)
	if err == nil && bytes.Equal(old, page) {
		return nil
	}
	if check {
		return fmt.Errorf("%s is out of date: run 'make conformance'", path)
	}
	return os.WriteFile(path, page, 0o644)
}
