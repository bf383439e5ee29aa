package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"carisma.dev/gateway/codegen/model"
)

// shape is what the tags of a struct type say.
type shape struct {
	names     []string // keys in order of declaration
	members   map[string]*member
	positions []int // indices of model.Position members
}

type member struct {
	index    int
	typ      reflect.Type
	required bool
	fallback reflect.Value // the default; invalid if there is none
	text     string        // the default's text
	rules    rules
	doc      string
	example  string
}

// help says what a missing member is: its doc as part of a sentence.
func (m *member) help() string {
	if m.doc == "" {
		return describe(m.typ)
	}
	text := strings.TrimSuffix(m.doc, ".")
	if len(text) > 1 && text[1] >= 'a' && text[1] <= 'z' { // not TCP
		text = strings.ToLower(text[:1]) + text[1:]
	}
	if m.example != "" {
		text += ", such as " + m.example
	}
	return text
}

var shapes sync.Map // reflect.Type → *shape

// shapeOf panics where a tag is wrong: that is a mistake in the program.
func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{members: map[string]*member{}}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == reflect.TypeFor[model.Position]() {
			s.positions = append(s.positions, i)
			continue
		}
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		m := &member{
			index: i, typ: f.Type, required: f.Tag.Get("required") == "true",
			doc: f.Tag.Get("doc"), example: f.Tag.Get("example"), rules: rulesOf(f),
		}
		if text, ok := f.Tag.Lookup("default"); ok {
			m.text, m.fallback = text, mustScalar(f, f.Type, text)
		}
		s.names = append(s.names, key)
		s.members[key] = m
	}
	actual, _ := shapes.LoadOrStore(t, s)
	return actual.(*shape)
}

// defaults sets a struct to what it is when the file leaves all of it out.
func (s *shape) defaults(to reflect.Value) {
	for _, m := range s.members {
		field := to.Field(m.index)
		switch {
		case m.fallback.IsValid():
			field.Set(m.fallback)
		case field.Kind() == reflect.Struct && !isText(m.typ):
			shapeOf(m.typ).defaults(field)
		}
	}
}

// rules bound the values of one member, or of each element of a list.
type rules struct {
	low, high reflect.Value // of the scalar's or the range's bound's type
	lowText   string
	highText  string
	pattern   *regexp.Regexp
	example   string
}

func rulesOf(f reflect.StructField) rules {
	var r rules
	t := f.Type
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if x, ok := reflect.New(t).Interface().(anyRange); ok {
		t = x.boundType()
	}
	if text, ok := f.Tag.Lookup("min"); ok {
		r.low, r.lowText = mustScalar(f, t, text), text
	}
	if text, ok := f.Tag.Lookup("max"); ok {
		r.high, r.highText = mustScalar(f, t, text), text
	}
	if p, ok := f.Tag.Lookup("pattern"); ok {
		r.pattern = regexp.MustCompile("^(?:" + p + ")$")
	}
	r.example = f.Tag.Get("example")
	return r
}

func mustScalar(f reflect.StructField, t reflect.Type, text string) reflect.Value {
	v := reflect.New(t).Elem()
	if err := parseScalar(text, v); err != nil {
		panic(fmt.Sprintf("config: tag of %s: %q %v", f.Name, text, err)) //nolint:forbidigo // a mistake in the program, which its first test finds
	}
	return v
}

func (r rules) check(text string, v reflect.Value) error {
	if r.pattern != nil && !r.pattern.MatchString(text) {
		allowed := r.pattern.String()
		allowed = "text that matches " + allowed[len("^(?:"):len(allowed)-len(")$")]
		if r.example != "" {
			allowed += ", such as " + r.example
		}
		return badValue("is not well formed", allowed)
	}
	lo, hi := v, v
	if x, ok := v.Addr().Interface().(anyRange); ok {
		lo, hi = x.bounds()
	}
	if r.low.IsValid() && compareScalar(lo, r.low) < 0 || r.high.IsValid() && compareScalar(hi, r.high) > 0 {
		return badValue("is out of range", r.span(lo.Type()))
	}
	return nil
}

func (r rules) span(t reflect.Type) string {
	switch {
	case r.highText != "" && r.lowText != "":
		return r.lowText + " to " + r.highText
	case r.highText != "":
		return "at most " + r.highText
	case t.Kind() == reflect.Uint16:
		return r.lowText + " to 65535"
	}
	return "at least " + r.lowText
}
