package bench

import (
	"fmt"
	"io"
	"slices"
)

// WriteMarkdown writes the result as the tables of docs/performance.md.
func (r *Result) WriteMarkdown(w io.Writer) {
	fmt.Fprintln(w, "| round trip, 8 B, all on one core | p50 µs (range over rounds) | p99 µs | × vsomeip |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "| %s | %.0f (%.0f–%.0f) | %.0f | %.2f |\n",
			row.Path, row.P50, slices.Min(row.Rounds), slices.Max(row.Rounds), row.P99, row.Ratio)
	}
	fmt.Fprintln(w, "\n| aim, in round trips of vsomeip | at most | measured | |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, a := range r.Aims {
		verdict := "met"
		if !a.Met {
			verdict = "missed"
		}
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %s |\n", a.What, a.Limit, a.Value, verdict)
	}
	fmt.Fprintln(w, "\n| transcoding a struct | fields | ns | allocations | protobuf-go's generated code, ns | ratio |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, t := range r.Transcoding {
		fmt.Fprintf(w, "| %s | %d | %.0f | %d | %.0f | %.2f |\n",
			t.Direction, t.Fields, t.Nanoseconds, t.Allocations, t.Protobuf, t.Ratio)
	}
}
