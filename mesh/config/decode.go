package config

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"carisma.dev/gateway/codegen/model"
)

// Decode reads a YAML file into a pointer to a struct. It is strict: an unknown
// or doubled key, a missing required one, a wrong type or a bad value is an
// error with its place, and all of them are reported, as *Error joined.
//
// A member's key is its yaml tag; a member without one is not read. Further
// tags: required:"true"; default, the text of a value; min and max, for
// integers, durations and ranges; pattern, a regular expression for the whole
// text; doc and example, for messages and Schema. A member of type
// model.Position gets the place of the mapping.
//
// Types may implement Unmarshaler and Checker. Members of a struct that the file
// leaves out get their defaults, too.
func Decode(path string, data []byte, into any) error {
	d := &decoder{file: path}
	if node := d.parse(data); node != nil {
		d.decodeInto(Value{d, node, ""}, into)
	}
	return join(d.errs)
}

type decoder struct {
	file string
	errs []*Error
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (?s:(.*))$`)

// parse returns the top node of the only document.
func (d *decoder) parse(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}
	}
	if err == nil {
		if err = dec.Decode(&second); errors.Is(err, io.EOF) {
			return doc.Content[0]
		} else if err == nil {
			Value{d, &second, ""}.Fail("one document", "the file has a second document")
			return nil
		}
	}
	at := &yaml.Node{Line: 1, Column: 1}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		at.Column = firstColumn(data, at.Line)
		message = m[2]
	}
	Value{d, at, ""}.Fail("", "not valid YAML: %s", message)
	return nil
}

// firstColumn returns where the text of a line begins.
func firstColumn(data []byte, line int) int {
	lines := bytes.Split(data, []byte("\n"))
	if line > len(lines) {
		return 1
	}
	text := lines[line-1]
	return len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}

func (d *decoder) decodeInto(v Value, into any) {
	d.value(v, reflect.ValueOf(into).Elem(), rules{})
}

// value reads any type. On a mistake the target keeps what it had.
func (d *decoder) value(v Value, to reflect.Value, r rules) {
	if v.node.Kind == yaml.AliasNode || v.node.Anchor != "" {
		v.Fail("the value itself", "anchors and aliases are not read")
		return
	}
	if to.Kind() == reflect.Pointer {
		fresh := reflect.New(to.Type().Elem())
		d.value(v, fresh.Elem(), r)
		to.Set(fresh)
		return
	}
	if u, ok := to.Addr().Interface().(Unmarshaler); ok {
		u.UnmarshalConfig(v)
	} else {
		switch t := to.Type(); {
		case isScalar(t):
			d.scalar(v, to, r)
		case t.Kind() == reflect.Struct:
			d.structure(v, to)
		case t.Kind() == reflect.Slice:
			d.list(v, to, r)
		case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
			d.mapping(v, to, r)
		default:
			panic("config: cannot read a " + t.String()) //nolint:forbidigo // a mistake in the program, which its first test finds
		}
	}
	if c, ok := to.Addr().Interface().(Checker); ok {
		c.CheckConfig(v)
	}
}

func (d *decoder) scalar(v Value, to reflect.Value, r rules) {
	t := to.Type()
	if v.node.Kind != yaml.ScalarNode {
		v.Fail(describe(t), "is %s", nodeWord(v.node))
		return
	}
	if tag := v.node.ShortTag(); !isText(t) && !fits(tag, t.Kind()) || tag == "!!null" {
		if tag == "!!str" {
			v.Fail(describe(t), "%q is text", v.node.Value)
		} else if t.Kind() == reflect.String && tag != "!!null" {
			v.Fail(describe(t), "%s is %s: write it in quotes to make it text", v.node.Value, nodeWord(v.node))
		} else {
			v.Fail(describe(t), "is %s", nodeWord(v.node))
		}
		return
	}
	fresh := reflect.New(t).Elem()
	err := parseScalar(v.node.Value, fresh)
	if err == nil {
		err = r.check(v.node.Value, fresh)
	}
	var bad *valueError
	if errors.As(err, &bad) {
		e := &Error{Message: strconv.Quote(v.node.Value) + " " + bad.message, Allowed: bad.allowed}
		if words, ok := fresh.Interface().(enumerated); ok {
			e.Suggestion = nearest(v.node.Value, words.Values())
		}
		v.report(e)
		return
	}
	to.Set(fresh)
}

// fits reports whether a scalar that YAML resolves to tag may be a kind.
func fits(tag string, k reflect.Kind) bool {
	switch k {
	case reflect.String:
		return tag == "!!str"
	case reflect.Bool:
		return tag == "!!bool"
	default: // a fraction for an integer is a bad value
		return tag == "!!int" || tag == "!!float"
	}
}

func (d *decoder) list(v Value, to reflect.Value, r rules) {
	if v.node.Kind != yaml.SequenceNode {
		v.Fail("a list", "is %s", nodeWord(v.node))
		return
	}
	list := reflect.MakeSlice(to.Type(), len(v.node.Content), len(v.node.Content))
	for i := range v.node.Content {
		d.value(v.Index(i), list.Index(i), r)
	}
	to.Set(list)
}

func (d *decoder) mapping(v Value, to reflect.Value, r rules) {
	if v.node.Kind != yaml.MappingNode {
		v.Fail("a mapping", "is %s", nodeWord(v.node))
		return
	}
	m := reflect.MakeMap(to.Type())
	for _, k := range d.keys(v) {
		elem := reflect.New(to.Type().Elem()).Elem()
		d.value(v.At(k.Value), elem, r)
		m.SetMapIndex(reflect.ValueOf(k.Value).Convert(to.Type().Key()), elem)
	}
	to.Set(m)
}

func (d *decoder) structure(v Value, to reflect.Value) {
	s := shapeOf(to.Type())
	s.defaults(to)
	for _, i := range s.positions {
		to.Field(i).Set(reflect.ValueOf(model.Position{File: d.file, Line: v.node.Line, Column: v.node.Column}))
	}
	if v.node.Kind != yaml.MappingNode {
		v.Fail("a mapping with "+strings.Join(s.names, ", "), "is %s", nodeWord(v.node))
		return
	}
	given := map[string]bool{}
	for _, k := range d.keys(v) {
		m, ok := s.members[k.Value]
		if !ok {
			Value{d, k, v.path}.report(&Error{
				Message: "unknown key " + strconv.Quote(k.Value), Suggestion: nearest(k.Value, s.names),
				Allowed: strings.Join(s.names, ", "),
			})
			continue
		}
		given[k.Value] = true
		d.value(v.At(k.Value), to.Field(m.index), m.rules)
	}
	for _, name := range s.names {
		if m := s.members[name]; m.required && !given[name] {
			v.Fail(m.help(), "missing key %q", name)
		}
	}
}

// keys returns the keys of a mapping and reports those it cannot use.
func (d *decoder) keys(v Value) []*yaml.Node {
	var keys []*yaml.Node
	first := map[string]*yaml.Node{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		k := v.node.Content[i]
		at := Value{d, k, v.path}
		switch before := first[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			at.Fail("text", "a key is %s", nodeWord(k))
		case before != nil:
			at.Fail("each key once", "duplicate key %q, first on line %d", k.Value, before.Line)
		default:
			first[k.Value] = k
			keys = append(keys, k)
		}
	}
	return keys
}

func nodeWord(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "a key without a value"
	case "!!timestamp":
		return "a date"
	}
	return "a value of type " + n.ShortTag()
}
