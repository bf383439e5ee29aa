package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteMarkdown writes the result as the tables of docs/performance.md.
func (r *Result) WriteMarkdown(w io.Writer) {
	fmt.Fprintf(w, "The machine's load average was %.1f when this run began.\n", r.Busy)
	table(w, "| aim | | limit | measured | |", r.Aims, func(a Aim) string {
		bound, verdict := "at most", "met"
		if a.Least {
			bound = "at least"
		}
		if !a.Met {
			verdict = "missed"
		}
		return fmt.Sprintf("| %s | %s | %g | %.2f | %s |", a.What, bound, a.Limit, a.Value, verdict)
	})
	table(w, "| floor of an aim, in the same run | measured |", r.Floors, func(f Floor) string {
		return fmt.Sprintf("| %s | %.2f |", f.What, f.Value)
	})
	table(w, "| round trip, 8 B, all on one core | p50 µs (range over rounds) | p99 µs | × vsomeip |", r.Rows, func(row Row) string {
		return fmt.Sprintf("| %s | %.0f (%.0f–%.0f) | %.0f | %.2f |",
			row.Path, row.P50, slices.Min(row.Rounds), slices.Max(row.Rounds), row.P99, row.Ratio)
	})
	table(w, "| two cores, no Envoy | unit | rate (range over rounds) | × vsomeip | × plain grpc-go | |", r.Loads, func(l Load) string {
		return fmt.Sprintf("| %s | %s | %.0f (%.0f–%.0f) | %.2f | %.2f | %s |",
			l.What, l.Unit, l.Rate, slices.Min(l.Rounds), slices.Max(l.Rounds), l.Vsomeip, l.Plain, l.Note)
	})
	table(w, "| registry change → ACK of both Envoys | services | p50 ms | p99 ms |", r.Changes, func(c Change) string {
		return fmt.Sprintf("| %s | %d | %.2f | %.2f |", c.What, c.Services, c.P50, c.P99)
	})
	table(w, "| who waits for a vsomeip ECU | start → first call, ms | more than vsomeip | kill, start → first event, ms | more than vsomeip |", r.Starts,
		func(s Start) string {
			return fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %.1f |", s.Who, s.Call, s.CallMore, s.Event, s.EventMore)
		})
	table(w, "| idle | RSS MiB | anonymous MiB | CPU % | anonymous after a load, MiB |", r.Footprints, func(f Footprint) string {
		return fmt.Sprintf("| %s | %.1f | %.1f | %.2f | %.1f |", f.Program, f.RSS, f.Anon, f.CPU, f.Loaded)
	})
	writeSoak(w, r.Soak)
	table(w, "| transcoding a struct | fields | ns | allocations | protobuf-go's generated code, ns | ratio |", r.Transcoding,
		func(t Transcoding) string {
			return fmt.Sprintf("| %s | %d | %.0f | %d | %.0f | %.2f |", t.Direction, t.Fields, t.Nanoseconds, t.Allocations, t.Protobuf, t.Ratio)
		})
}

// table writes rows under a head, and nothing where there is none.
func table[T any](w io.Writer, head string, rows []T, line func(T) string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n%s\n", head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
	for _, row := range rows {
		fmt.Fprintln(w, line(row))
	}
}
