// Package lint finds what is wrong or doubtful about interfaces that are each
// well formed: clashes between them, messages that may not fit, names that
// change on the way.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"carisma.dev/gateway/codegen/model"
)

// Severity says what a finding means.
type Severity uint8

// The severities. With an Error a vehicle does not work as its files say; a
// Warning works until some value or peer comes; Info is good to know.
const (
	Info Severity = iota
	Warning
	Error
)

func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Info:
	}
	return "info"
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is what a rule says about one place.
type Finding struct {
	Pos      model.Position
	Severity Severity
	Rule     string // such as "udp-size"
	Message  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Pos, f.Severity, f.Message, f.Rule)
}

// Check returns what all rules find, in the order of places.
func Check(interfaces []*model.Interface) []Finding {
	r := &report{}
	clashes(r, interfaces)
	for _, i := range interfaces {
		if i.SOMEIP == nil {
			continue
		}
		instanceNames(r, i)
		reachability(r, i)
		eventgroups(r, i)
		udpSize(r, i)
		types(r, i)
	}
	slices.SortStableFunc(r.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column), cmp.Compare(b.Severity, a.Severity))
	})
	return slices.Compact(r.findings) // interfaces of one file share types
}

type report struct{ findings []Finding }

func (r *report) add(pos model.Position, s Severity, rule, format string, args ...any) {
	r.findings = append(r.findings, Finding{pos, s, rule, fmt.Sprintf(format, args...)})
}
