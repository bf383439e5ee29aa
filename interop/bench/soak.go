package bench

import (
	"fmt"
	"io"
	"path/filepath"

	"carisma.dev/gateway/interop/docs"
	"carisma.dev/gateway/interop/faults"
)

// soakFile is where the fault runner leaves the result of its long run.
var soakFile = filepath.Join("interop", "faults", "soak.json")

func (r *Result) judgeSoak() {
	if r.Soak == nil {
		return
	}
	var memory float64
	var descriptors, goroutines int
	for _, p := range r.Soak.Programs {
		memory = max(memory, float64(p.End.AnonKiB)/float64(max(p.Start.AnonKiB, 1)))
		descriptors = max(descriptors, p.End.Descriptors-p.Start.Descriptors)
		goroutines = max(goroutines, p.End.Goroutines-p.Start.Goroutines)
	}
	r.Aims.AtMost("an hour of faults: anonymous memory at the end over the start, of the worst program", memory, faults.SoakSlack)
	r.Aims.AtMost("an hour of faults: descriptors more than at the start", float64(descriptors), 0)
	r.Aims.AtMost("an hour of faults: goroutines more than at the start", float64(goroutines), 0)
}

// writeSoak writes an excerpt of the long run, which may be nil.
func writeSoak(w io.Writer, s *faults.Soak) {
	if s == nil {
		fmt.Fprintln(w, "\nThe long run of the fault runner is not recorded: what it plays is in [reliability.md](reliability.md).")
		return
	}
	fmt.Fprintf(w, "\nThe fault runner's long run: %d faults in %.0f minutes (see [reliability.md](reliability.md)).\n", s.Faults, s.Took/60)
	docs.Table(w, "| program | lived min | anonymous MiB, start → end | descriptors | goroutines |", s.Programs, func(p *faults.SoakProgram) string {
		goroutines := ""
		if p.End.Goroutines > 0 {
			goroutines = fmt.Sprintf("%d → %d", p.Start.Goroutines, p.End.Goroutines)
		}
		return fmt.Sprintf("| %s | %.0f | %.1f → %.1f | %d → %d | %s |", p.Name, p.Lived/60,
			float64(p.Start.AnonKiB)/1024, float64(p.End.AnonKiB)/1024, p.Start.Descriptors, p.End.Descriptors, goroutines)
	})
}
