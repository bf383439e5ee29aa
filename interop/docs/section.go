// Package docs writes the tables of Markdown pages, and replaces generated sections.
package docs

import (
	"bytes"
	"fmt"
	"os"
)

// Replace puts text between the lines <!-- begin NAME --> and <!-- end NAME -->
// of a page.
func Replace(path, name string, text []byte) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := []byte("<!-- begin "+name+" -->\n"), []byte("<!-- end "+name+" -->")
	before, rest, ok := bytes.Cut(page, begin)
	if !ok {
		return fmt.Errorf("%s: no line %q", path, bytes.TrimSpace(begin))
	}
	_, after, ok := bytes.Cut(rest, end)
	if !ok {
		return fmt.Errorf("%s: no line %q after the section's begin", path, end)
	}
	return os.WriteFile(path, bytes.Join([][]byte{before, begin, bytes.TrimRight(text, "\n"), []byte("\n"), end, after}, nil), 0o644)
}
