// Docgen writes the page of the parameters of vsomeip.
package main

import (
	"fmt"
	"os"

	"carisma.dev/gateway/codegen/vsomeip"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "docgen: want the file to write")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], vsomeip.Markdown(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}
