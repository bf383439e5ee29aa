package config

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"carisma.dev/gateway/codegen/model"
)

// Unmarshaler is implemented by types that read themselves. A problem is
// reported by v.Fail.
type Unmarshaler interface {
	UnmarshalConfig(v Value)
}

// Checker is implemented by types with rules beyond those of each member. It is
// called after the members were read, also where some of them were wrong: these
// then have their default or zero value, which it must let pass, for the mistake
// is already reported.
type Checker interface {
	CheckConfig(v Value)
}

// Value is a place in a configuration file.
type Value struct {
	d    *decoder
	node *yaml.Node
	path string
}

// Pos returns the place.
func (v Value) Pos() model.Position {
	return model.Position{File: v.d.file, Line: v.node.Line, Column: v.node.Column}
}

// Text returns the text of a scalar, and false for a list or mapping.
func (v Value) Text() (string, bool) { return v.node.Value, v.node.Kind == yaml.ScalarNode }

// Key returns the value of a key of a mapping, and false if it has no such key;
// the place is then the mapping's own.
func (v Value) Key(name string) (Value, bool) {
	path := join2(v.path, name)
	if v.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(v.node.Content); i += 2 {
			if v.node.Content[i].Value == name {
				return Value{v.d, v.node.Content[i+1], path}, true
			}
		}
	}
	return Value{v.d, v.node, path}, false
}

// At returns the value of a key, or the mapping itself if it has no such key.
func (v Value) At(name string) Value {
	at, _ := v.Key(name)
	return at
}

// Index returns an element of a list.
func (v Value) Index(i int) Value {
	path := v.path + "[" + strconv.Itoa(i) + "]"
	if v.node.Kind == yaml.SequenceNode && i < len(v.node.Content) {
		return Value{v.d, v.node.Content[i], path}
	}
	return Value{v.d, v.node, path}
}

// Decode reads the value into a pointer, with all rules of its type.
func (v Value) Decode(into any) { v.d.decodeInto(v, into) }

// Fail reports what is wrong with the value and what is allowed instead, which
// may be empty.
func (v Value) Fail(allowed, format string, args ...any) {
	v.report(&Error{Message: fmt.Sprintf(format, args...), Allowed: allowed})
}

func (v Value) report(e *Error) {
	e.File, e.Line, e.Column = v.d.file, v.node.Line, v.node.Column
	if v.path != "" {
		e.Message = v.path + ": " + e.Message
	}
	v.d.errs = append(v.d.errs, e)
}

func join2(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
