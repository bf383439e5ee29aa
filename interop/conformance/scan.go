package conformance

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Test is a test function.
type Test struct {
	File string // relative to the root, with slashes
	Name string
}

// Citations are the tests by what they cite ("HDR-1", "case 28") and each by its
// own name ("someip/sd.TestX").
type Citations map[string][]Test

// Scan reads all test files below root and finds what their tests cite.
func Scan(root fs.FS) (Citations, error) {
	found := Citations{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(d.Name()) || name == "interop/conformance" { // whose tests cite in play
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return found.file(root, name)
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// sorted orders tests by package, file and name, each once.
func sorted(tests []Test) []Test {
	slices.SortFunc(tests, func(a, b Test) int {
		return cmp.Or(strings.Compare(path.Dir(a.File), path.Dir(b.File)), strings.Compare(a.File, b.File), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(tests)
}

// of returns the tests that show a rule.
func (c Citations) of(r Rule) []Test {
	all := slices.Clone(c[r.ID])
	for _, name := range r.Tests {
		all = append(all, c[name]...)
	}
	return sorted(all)
}

// skipped says that no source of the project is in a directory.
func skipped(dir string) bool {
	return dir == "testdata" || dir == "bin" || dir == "build" || dir != "." && strings.HasPrefix(dir, ".")
}

func (c Citations) file(root fs.FS, name string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || !isTest(f) {
			continue
		}
		test := Test{File: name, Name: f.Name.Name}
		own := path.Dir(name) + "." + test.Name
		c[own] = append(c[own], test)
		for key := range cited(text(file, f)) {
			c[key] = append(c[key], test)
		}
	}
	return nil
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Example)([^a-z]|$)`)

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && testName.MatchString(f.Name.Name) && f.Name.Name != "TestMain"
}

// text is all that can cite in a test: its name, comments and string literals.
func text(file *ast.File, f *ast.FuncDecl) string {
	var b strings.Builder
	fmt.Fprintln(&b, namedCase.ReplaceAllString(f.Name.Name, "case $1 "))
	from := f.Pos()
	if f.Doc != nil {
		from = f.Doc.Pos()
	}
	for _, group := range file.Comments {
		if from <= group.Pos() && group.End() <= f.End() {
			fmt.Fprintln(&b, group.Text())
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			fmt.Fprintln(&b, lit.Value)
		}
		return true
	})
	return b.String()
}

var (
	namedCase = regexp.MustCompile(`^(?:Test|Fuzz|Example)Case(\d+)`)
	ruleRange = regexp.MustCompile(`\b([A-Z][A-Z0-9]*)-(\d+)(a?)\b(?: to (?:([A-Z][A-Z0-9]*)-)?(\d+)\b)?`)
	caseList  = regexp.MustCompile(`(?i)\bcases?\s+(\d+(?:(?:,\s*(?:and\s+)?|\s+and\s+|\s+to\s+)\d+)*)\b`)
	caseItem  = regexp.MustCompile(`(\s+to\s+)?(\d+)`)
)

// cited returns the rules and cases that a text names.
func cited(text string) map[string]bool {
	keys := map[string]bool{}
	for _, m := range ruleRange.FindAllStringSubmatch(text, -1) {
		prefix, from := m[1], number(m[2])
		to := from
		if m[5] != "" && (m[4] == "" || m[4] == prefix) {
			to = min(number(m[5]), from+99)
		}
		keys[prefix+"-"+m[2]+m[3]] = true
		for n := from + 1; n <= to; n++ {
			keys[prefix+"-"+strconv.Itoa(n)] = true
		}
	}
	for _, m := range caseList.FindAllStringSubmatch(text, -1) {
		last := 0
		for _, item := range caseItem.FindAllStringSubmatch(m[1], -1) {
			n := number(item[2])
			if item[1] == "" {
				last = n - 1
			}
			for i := last + 1; i <= min(n, last+100); i++ {
				keys["case "+strconv.Itoa(i)] = true
			}
			last = n
		}
	}
	return keys
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil { // too many digits for an id
		return 0
	}
	return n
}
