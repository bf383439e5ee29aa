package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// soakFile is where the fault runner leaves the result of its long run.
var soakFile = filepath.Join("interop", "faults", "soak.json")

// Soak is what the fault runner measured in its long run: an excerpt of its result.
type Soak struct {
	Took     float64       `json:"took_s"`
	Faults   int           `json:"faults"`
	Programs []SoakProgram `json:"programs"`
}

// SoakProgram is a program that lived to the end of the long run.
type SoakProgram struct {
	Name  string  `json:"name"`
	Lived float64 `json:"lived_s"`
	Start Taken   `json:"start"`
	End   Taken   `json:"end"`
}

// Taken is what a program takes at a moment.
type Taken struct {
	AnonKiB     int `json:"anon_kib"`
	Descriptors int `json:"descriptors"`
	Goroutines  int `json:"goroutines,omitempty"` // of a gateway
}

// readSoak returns the recorded result, nil where there is none.
func readSoak(path string) (*Soak, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := new(Soak)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// flat is how much more memory still counts as none: heaps differ by that from
// collection to collection.
const flat = 1.1

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
	r.atMost("an hour of faults: anonymous memory at the end over the start, of the worst program", memory, flat)
	r.atMost("an hour of faults: descriptors more than at the start", float64(descriptors), 0)
	r.atMost("an hour of faults: goroutines more than at the start", float64(goroutines), 0)
}

func (s *Soak) writeMarkdown(w io.Writer) {
	if s == nil {
		fmt.Fprintln(w, "\nThe long run of the fault runner is not recorded: what it plays is in [reliability.md](reliability.md).")
		return
	}
	fmt.Fprintf(w, "\nThe fault runner's long run: %d faults in %.0f minutes (see [reliability.md](reliability.md)).\n\n", s.Faults, s.Took/60)
	fmt.Fprintln(w, "| program | lived min | anonymous MiB, start → end | descriptors | goroutines |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, p := range s.Programs {
		goroutines := ""
		if p.End.Goroutines > 0 {
			goroutines = fmt.Sprintf("%d → %d", p.Start.Goroutines, p.End.Goroutines)
		}
		fmt.Fprintf(w, "| %s | %.0f | %.1f → %.1f | %d → %d | %s |\n", p.Name, p.Lived/60,
			float64(p.Start.AnonKiB)/1024, float64(p.End.AnonKiB)/1024, p.Start.Descriptors, p.End.Descriptors, goroutines)
	}
}
