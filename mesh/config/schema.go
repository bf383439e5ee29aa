package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Describer is implemented by types with an Unmarshaler: it returns the JSON
// Schema of what they read, for Schema.
type Describer interface {
	ConfigSchema() map[string]any
}

// Schema returns the JSON Schema (draft 2020-12) of the files that Decode reads
// into the type of v, for editors. Decode checks more than a schema can say.
func Schema(v any) []byte {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := schema{defs: map[string]any{}, types: map[reflect.Type]string{}}
	top := s.structure(t)
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = strings.ToLower(t.Name())
	if len(s.defs) > 0 {
		top["$defs"] = s.defs
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(top) // maps, lists and text always encode
	return b.Bytes()
}

type schema struct {
	defs  map[string]any
	types map[reflect.Type]string // names in defs
}

const (
	numberPattern   = `(0x[0-9A-Fa-f]+|0|[1-9][0-9]*)`
	durationPattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`
)

func exact(pattern string) string { return "^(" + pattern + ")$" }

// typ returns the schema of a type with its rules.
func (s *schema) typ(t reflect.Type, m *member) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p := reflect.New(t).Interface()
	switch p := p.(type) {
	case Describer:
		return p.ConfigSchema()
	case Unmarshaler:
		return map[string]any{}
	case anyRange:
		if p.boundType() == durationType {
			return map[string]any{"type": "string", "pattern": exact(durationPattern + "(-" + durationPattern + ")?")}
		}
		return map[string]any{"anyOf": []any{
			map[string]any{"type": "integer"},
			map[string]any{"type": "string", "pattern": exact(numberPattern + "-" + numberPattern)},
		}}
	}
	switch {
	case t == durationType:
		return map[string]any{"type": "string", "pattern": exact(durationPattern)}
	case isText(t):
		return map[string]any{"type": "string"}
	case t.Kind() == reflect.Struct:
		return s.reference(t)
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.typ(t.Elem(), m)}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.typ(t.Elem(), m)}
	}
	return scalarSchema(t, m)
}

func scalarSchema(t reflect.Type, m *member) map[string]any {
	out := map[string]any{}
	switch {
	case t.Kind() == reflect.Bool:
		out["type"] = "boolean"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		out["type"] = "number"
	case t.Kind() == reflect.String:
		out["type"] = "string"
		if e, ok := reflect.Zero(t).Interface().(enumerated); ok {
			out["enum"] = e.Values()
		}
		if m.rules.pattern != nil {
			out["pattern"] = m.rules.pattern.String()
		}
	default:
		out["type"] = "integer"
		if reflect.Zero(t).CanUint() {
			out["minimum"] = uint64(0)
			out["maximum"] = uint64(1)<<t.Bits() - 1
		}
		if m.rules.low.IsValid() {
			out["minimum"] = m.rules.low.Interface()
		}
		if m.rules.high.IsValid() {
			out["maximum"] = m.rules.high.Interface()
		}
	}
	return out
}

// reference puts a struct into defs, once.
func (s *schema) reference(t reflect.Type) map[string]any {
	name, ok := s.types[t]
	if !ok {
		name = t.Name()
		if s.defs[name] != nil { // another package has the name, too
			name = strings.ReplaceAll(t.String(), ".", "_")
		}
		s.types[t] = name
		s.defs[name] = map[string]any{} // reserved while it is made
		s.defs[name] = s.structure(t)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (s *schema) structure(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	of := shapeOf(t)
	for _, name := range of.names {
		m := of.members[name]
		p := s.typ(m.typ, m)
		if m.doc != "" {
			p["description"] = m.doc
		}
		if m.fallback.IsValid() {
			p["default"] = defaultValue(m)
		}
		if m.example != "" {
			p["examples"] = []string{m.example}
		}
		properties[name] = p
		if m.required {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// defaultValue is a default as it stands in a file.
func defaultValue(m *member) any {
	if isText(m.typ) || m.typ.Kind() == reflect.String {
		return m.text
	}
	return m.fallback.Interface()
}
