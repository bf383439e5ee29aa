package conformance

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yaml
var rulesFile []byte

// Rules are what must be shown.
type Rules struct {
	Sections []Section
	Cases    []Case
}

// Section is a group of rules.
type Section struct {
	Title string
	Rules []Rule
}

// Rule is one rule of the protocol.
type Rule struct {
	ID     string
	Text   string   `yaml:"rule"`
	Tests  []string // shown by, without being cited there: "someip/sd.TestX"
	Reason string   // why no test shows it
}

// Case is a known fault of other implementations.
type Case struct {
	Number int    `yaml:"case"`
	Text   string `yaml:"fault"`
	Small  bool   // a test must be named after it
	Reason string // why there is none
}

// key is what a citation of the case looks like to the scanner.
func (c Case) key() string { return "case " + strconv.Itoa(c.Number) }

var idForm = regexp.MustCompile(`^[A-Z][A-Z0-9]*-\d+a?$`)

// Load reads the rules of the project.
func Load() (*Rules, error) { return decode(rulesFile) }

func decode(data []byte) (*Rules, error) {
	var r Rules
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	seen := map[string]bool{}
	for _, s := range r.Sections {
		for _, rule := range s.Rules {
			if !idForm.MatchString(rule.ID) || rule.Text == "" || seen[rule.ID] {
				return nil, fmt.Errorf("rules.yaml: rule %q: no id, no text, or twice", rule.ID)
			}
			seen[rule.ID] = true
		}
	}
	for _, c := range r.Cases {
		if c.Number <= 0 || c.Text == "" || seen[c.key()] {
			return nil, fmt.Errorf("rules.yaml: case %d: no number, no text, or twice", c.Number)
		}
		seen[c.key()] = true
	}
	return &r, nil
}
