package conformance

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestCited(t *testing.T) {
	for text, want := range map[string][]string{
		"RB-4, RB-6: a restart":        {"RB-4", "RB-6"},
		"TP-7 to TP-9, HDR-1":          {"HDR-1", "TP-7", "TP-8", "TP-9"},
		"E2E-3 to 5":                   {"E2E-3", "E2E-4", "E2E-5"},
		"RC-3 to HDR-9":                {"RC-3"},
		"SV-6a":                        {"SV-6a"},
		"HTTP-1, xTP-2, TP-3x, UTF-16": {"HTTP-1", "UTF-16"},
		"Cases 37, 38 and 40":          {"case 37", "case 38", "case 40"},
		"cases 1 to 3, case 7":         {"case 1", "case 2", "case 3", "case 7"},
		"in any case 5 of them":        {"case 5"},
		"uppercase 5, case five":       {},
		"TP-1 to 99999999999999999999": {"TP-1"},
	} {
		got := slices.Sorted(maps.Keys(cited(text)))
		require.ElementsMatch(t, want, got, text)
	}
}

const source = `package x

// HDR-9: not of a test.
var x = "HDR-9"

// HDR-1.
func TestOne(t *testing.T) {
	// HDR-2
	require.Equal(t, 1, 1, "case 3")
} // HDR-9

// HDR-9.
func helper() {}

func TestCase28Lost(t *testing.T) {}
func TestMain(m *testing.M)       { _ = "HDR-9" }
func Testify(t *testing.T)        { _ = "HDR-9" }
`

func scanned(t *testing.T) Citations {
	t.Helper()
	found, err := Scan(fstest.MapFS{
		"a/b_test.go":          {Data: []byte(source)},
		"a/b.go":               {Data: []byte("package x // HDR-9")},
		"a/testdata/c_test.go": {Data: []byte("not Go")},
		".git/d_test.go":       {Data: []byte("not Go")},
	})
	require.NoError(t, err)
	return found
}

func TestScan(t *testing.T) {
	one, lost := []Test{{"a/b_test.go", "TestOne"}}, []Test{{"a/b_test.go", "TestCase28Lost"}}
	require.Equal(t, Citations{
		"HDR-1": one, "HDR-2": one, "case 3": one, "case 28": lost, "a.TestOne": one, "a.TestCase28Lost": lost,
	}, scanned(t))
	_, err := Scan(fstest.MapFS{"e_test.go": {Data: []byte("not Go")}})
	require.ErrorContains(t, err, "e_test.go:1:1")
}

func TestCheck(t *testing.T) {
	found := scanned(t)
	for name, c := range map[string]struct {
		rules Rules
		err   string
	}{
		"all shown": {Rules{
			Sections: []Section{{Rules: []Rule{{ID: "HDR-1"}, {ID: "HDR-2"}, {ID: "TP-1", Tests: []string{"a.TestOne"}}, {ID: "TP-2", Reason: "none"}}}},
			Cases:    []Case{{Number: 28, Small: true}, {Number: 4}, {Number: 5, Small: true, Reason: "none"}},
		}, ""},
		"not shown":          {Rules{Sections: []Section{{Rules: []Rule{{ID: "TP-1", Text: "x"}}}}}, "TP-1: no test cites it and no reason is given: x"},
		"no such test":       {Rules{Sections: []Section{{Rules: []Rule{{ID: "TP-1", Reason: "y", Tests: []string{"a.TestTwo"}}}}}}, "TP-1: there is no test a.TestTwo"},
		"unknown rule":       {Rules{Sections: []Section{{Rules: []Rule{{ID: "HDR-1"}}}}}, "a/b_test.go: TestOne cites HDR-2, which is no rule"},
		"old reason":         {Rules{Sections: []Section{{Rules: []Rule{{ID: "HDR-1", Reason: "y"}, {ID: "HDR-2"}}}}}, "HDR-1: TestOne shows it, so the reason is out of date"},
		"case without test":  {Rules{Cases: []Case{{Number: 3, Small: true, Text: "z"}}}, "case 3: no test is named TestCase3: z"},
		"old reason of case": {Rules{Cases: []Case{{Number: 3, Reason: "z"}}}, "case 3: TestOne shows it, so the reason is out of date"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.rules.Check(found)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

func TestPages(t *testing.T) {
	rules := Rules{
		Sections: []Section{{"Header", []Rule{{ID: "HDR-1", Text: "a|b"}, {ID: "HDR-7", Text: "c", Reason: "later"}}}},
		Cases:    []Case{{Number: 28, Text: "lost", Small: true}, {Number: 5, Text: "unseen"}},
	}
	page := string(rules.Page(scanned(t)))
	require.Contains(t, page, "2 rules, 1 shown by tests, 1 with a reason why not.")
	require.Contains(t, page, "| HDR-1 | a\\|b | a: [TestOne](../a/b_test.go) |\n| HDR-7 | c | — later |\n")

	first, err := rules.CasesPage([]byte("# Interoperation\n"), scanned(t))
	require.NoError(t, err)
	require.Contains(t, string(first), "1 of the 1 that make a small\ntest")
	require.Contains(t, string(first), "| 28 | lost | a: [TestCase28Lost](../a/b_test.go) |")
	require.NotContains(t, string(first), "unseen")
	again, err := rules.CasesPage(append(first, "behind\n"...), scanned(t))
	require.NoError(t, err)
	require.Equal(t, string(first)+"behind\n", string(again))
	_, err = rules.CasesPage([]byte(strings.Split(string(first), casesEnd)[0]), scanned(t))
	require.ErrorContains(t, err, "end of the generated part")
}

func TestRules(t *testing.T) {
	rules, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, rules.Sections)
	require.NotEmpty(t, rules.Cases)
	for _, bad := range []string{
		"sections: [{title: x, rules: [{id: hdr, rule: x}]}]",
		"sections: [{title: x, rules: [{id: HDR-1, rule: x}, {id: HDR-1, rule: y}]}]",
		"sections: [{title: x, rules: [{id: HDR-1}]}]",
		"cases: [{case: 1, fault: x}, {case: 1, fault: y}]",
		"cases: [{case: 0, fault: x}]",
		"unknown: 1",
	} {
		_, err := decode([]byte(bad))
		require.ErrorContains(t, err, "rules.yaml: ", bad)
	}
}
