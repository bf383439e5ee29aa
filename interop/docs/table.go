package docs

import (
	"fmt"
	"io"
	"strings"
)

// Table writes an empty line and a table of rows under a head, and nothing where
// there is no row.
func Table[T any](w io.Writer, head string, rows []T, line func(T) string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n%s\n", head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
	for _, row := range rows {
		fmt.Fprintln(w, line(row))
	}
}
