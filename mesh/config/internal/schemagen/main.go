// Schemagen writes the JSON Schema of node.yaml.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"carisma.dev/gateway/mesh/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the file to write, got %d arguments", len(args))
	}
	if err := os.MkdirAll(filepath.Dir(args[0]), 0o750); err != nil {
		return err
	}
	return os.WriteFile(args[0], config.Schema(config.Node{}), 0o600)
}
