package conformance

import (
	"errors"
	"fmt"
	"strings"
)

// Check finds rules that nothing shows, reasons that are no longer true, and
// citations of rules that are not there.
func (r *Rules) Check(found Citations) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	known, prefixes := map[string]bool{}, map[string]bool{}
	for _, s := range r.Sections {
		for _, rule := range s.Rules {
			known[rule.ID] = true
			prefix, _, _ := strings.Cut(rule.ID, "-")
			prefixes[prefix] = true
			for _, name := range rule.Tests {
				if len(found[name]) == 0 {
					bad("%s: there is no test %s", rule.ID, name)
				}
			}
			switch tests := found.of(rule); {
			case len(tests) == 0 && rule.Reason == "":
				bad("%s: no test cites it and no reason is given: %s", rule.ID, rule.Text)
			case len(tests) > 0 && rule.Reason != "":
				bad("%s: %s shows it, so the reason is out of date", rule.ID, tests[0].Name)
			}
		}
	}
	for _, c := range r.Cases {
		switch tests := found[c.key()]; {
		case len(tests) > 0 && c.Reason != "":
			bad("%s: %s shows it, so the reason is out of date", c.key(), tests[0].Name)
		case c.Small && c.Reason == "" && len(named(c, tests)) == 0:
			bad("%s: no test is named TestCase%d: %s", c.key(), c.Number, c.Text)
		}
	}
	for key, tests := range found {
		prefix, _, isRule := strings.Cut(key, "-")
		if isRule && prefixes[prefix] && !known[key] {
			bad("%s: %s cites %s, which is no rule", tests[0].File, tests[0].Name, key)
		}
	}
	return errors.Join(errs...)
}

// named returns the tests whose name has the number of the case.
func named(c Case, tests []Test) (all []Test) {
	for _, t := range tests {
		if m := namedCase.FindStringSubmatch(t.Name); m != nil && number(m[1]) == c.Number {
			all = append(all, t)
		}
	}
	return all
}
