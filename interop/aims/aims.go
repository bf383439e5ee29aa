// Package aims compares measurements with what the project has set itself.
package aims

import (
	"fmt"
	"io"

	"carisma.dev/gateway/interop/docs"
)

// Aim is a comparison that the project has set itself.
type Aim struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the limit is the least value, else the largest
	Met   bool    `json:"met"`
}

// Aims are those of a run.
type Aims []Aim

// AtMost adds an aim that is met by the limit and what is below.
func (a *Aims) AtMost(what string, value, limit float64) {
	*a = append(*a, Aim{What: what, Value: value, Limit: limit, Met: value <= limit})
}

// AtLeast adds an aim that is met by the limit and what is above.
func (a *Aims) AtLeast(what string, value, limit float64) {
	*a = append(*a, Aim{What: what, Value: value, Limit: limit, Least: true, Met: value >= limit})
}

// WriteMarkdown writes a table, with an empty line before it.
func (a Aims) WriteMarkdown(w io.Writer) {
	docs.Table(w, "| aim | | limit | measured | |", a, func(a Aim) string {
		bound, verdict := "at most", "met"
		if a.Least {
			bound = "at least"
		}
		if !a.Met {
			verdict = "missed"
		}
		return fmt.Sprintf("| %s | %s | %g | %.2f | %s |", a.What, bound, a.Limit, a.Value, verdict)
	})
}
