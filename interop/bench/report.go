package bench

import (
	"fmt"
	"io"
	"slices"

	"carisma.dev/gateway/interop/docs"
)

// WriteMarkdown writes the result as the tables of docs/performance.md.
func (r *Result) WriteMarkdown(w io.Writer) {
	fmt.Fprintf(w, "The machine's load average was %.1f when this run began.\n", r.Busy)
	r.Aims.WriteMarkdown(w)
	docs.Table(w, "| floor of an aim, in the same run | measured |", r.Floors, func(f Floor) string {
		return fmt.Sprintf("| %s | %.2f |", f.What, f.Value)
	})
	docs.Table(w, "| round trip, 8 B, all on one core | p50 µs (range over rounds) | p99 µs | × vsomeip |", r.Rows, func(row Row) string {
		return fmt.Sprintf("| %s | %.0f (%.0f–%.0f) | %.0f | %.2f |",
			row.Path, row.P50, slices.Min(row.Rounds), slices.Max(row.Rounds), row.P99, row.Ratio)
	})
	docs.Table(w, "| two cores, no Envoy | unit | rate (range over rounds) | × vsomeip | × plain grpc-go | |", r.Loads, func(l Load) string {
		return fmt.Sprintf("| %s | %s | %.0f (%.0f–%.0f) | %.2f | %.2f | %s |",
			l.What, l.Unit, l.Rate, slices.Min(l.Rounds), slices.Max(l.Rounds), l.Vsomeip, l.Plain, l.Note)
	})
	docs.Table(w, "| registry change → ACK of both Envoys | services | p50 ms | p99 ms |", r.Changes, func(c Change) string {
		return fmt.Sprintf("| %s | %d | %.2f | %.2f |", c.What, c.Services, c.P50, c.P99)
	})
	docs.Table(w, "| who waits for a vsomeip ECU | start → first call, ms | more than vsomeip | kill, start → first event, ms | more than vsomeip |", r.Starts,
		func(s Start) string {
			return fmt.Sprintf("| %s | %.1f | %.1f | %.1f | %.1f |", s.Who, s.Call, s.CallMore, s.Event, s.EventMore)
		})
	docs.Table(w, "| idle | RSS MiB | anonymous MiB | CPU % | anonymous after a load, MiB |", r.Footprints, func(f Footprint) string {
		return fmt.Sprintf("| %s | %.1f | %.1f | %.2f | %.1f |", f.Program, f.RSS, f.Anon, f.CPU, f.Loaded)
	})
	writeSoak(w, r.Soak)
	docs.Table(w, "| transcoding a struct | fields | ns | allocations | protobuf-go's generated code, ns | ratio |", r.Transcoding,
		func(t Transcoding) string {
			return fmt.Sprintf("| %s | %d | %.0f | %d | %.0f | %.2f |", t.Direction, t.Fields, t.Nanoseconds, t.Allocations, t.Protobuf, t.Ratio)
		})
}
