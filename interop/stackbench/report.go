package stackbench

import (
	"fmt"
	"io"

	"carisma.dev/gateway/interop/docs"
)

// WriteMarkdown writes the result as the tables of docs/performance.md.
func (r *Result) WriteMarkdown(w io.Writer) {
	docs.Table(w, "| measurement | unit | ours | Go floor | C floor | vsomeip | |", r.Rows, func(row Row) string {
		return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |",
			row.What, row.Unit, number(row.Ours), number(row.Floor), number(row.CFloor), number(row.Vsomeip), row.Note)
	})
	r.Aims.WriteMarkdown(w)
	docs.Table(w, "| on bytes, no sockets | B | ns | GB/s | allocations | |", r.Micros, func(m Micro) string {
		verdict := "met"
		if m.Allocations > 0 || m.MinGB > 0 && m.GB() < m.MinGB {
			verdict = "missed"
		}
		return fmt.Sprintf("| %s | %d | %.0f | %.2f | %d | %s |", m.What, m.Bytes, m.Nanoseconds, m.GB(), m.Allocations, verdict)
	})
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
