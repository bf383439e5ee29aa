package stackbench

import (
	"fmt"
	"io"
)

// WriteMarkdown writes the result as the tables of docs/performance.md.
func (r *Result) WriteMarkdown(w io.Writer) {
	fmt.Fprintln(w, "| measurement | unit | ours | Go floor | C floor | vsomeip | |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n",
			row.What, row.Unit, number(row.Ours), number(row.Floor), number(row.CFloor), number(row.Vsomeip), row.Note)
	}
	fmt.Fprintln(w, "\n| aim | | limit | measured | |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, a := range r.Aims {
		bound, verdict := "at most", "met"
		if a.Least {
			bound = "at least"
		}
		if !a.Met {
			verdict = "missed"
		}
		fmt.Fprintf(w, "| %s | %s | %g | %.2f | %s |\n", a.What, bound, a.Limit, a.Value, verdict)
	}
	fmt.Fprintln(w, "\n| on bytes, no sockets | B | ns | GB/s | allocations | |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, m := range r.Micros {
		verdict := "met"
		if m.Allocations > 0 || m.MinGB > 0 && m.GB() < m.MinGB {
			verdict = "missed"
		}
		fmt.Fprintf(w, "| %s | %d | %.0f | %.2f | %d | %s |\n", m.What, m.Bytes, m.Nanoseconds, m.GB(), m.Allocations, verdict)
	}
}

// number prints three digits or all before the point; nothing for what was not measured.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
