// Package conformance joins the rules of the SOME/IP protocol (rules.yaml) with
// the tests that cite them, and writes docs/conformance.md and the table of cases
// in docs/interop.md from both.
//
// A test cites a rule by its id (HDR-2, "TP-7 to TP-9") or a case by its number
// (case 28, a name that starts with TestCase28), in its doc comment, its body or
// the texts in it. What stands outside a test shows nothing.
package conformance

//go:generate go run carisma.dev/gateway/interop/cmd/conformance -C ../..
