package config

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"
)

// Encode writes a struct as the YAML that Decode reads back to the same value.
// Members that are empty are left out.
func Encode(v any) ([]byte, error) {
	node, err := encodeStruct(reflect.Indirect(reflect.ValueOf(v)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return b.Bytes(), nil
}

// Defaults sets the members of a struct that have a default to it, as Decode does
// for a file that leaves them out.
func Defaults(v any) {
	to := reflect.ValueOf(v).Elem()
	shapeOf(to.Type()).defaults(to)
}

func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	s := shapeOf(v.Type())
	for _, name := range s.names {
		m := s.members[name]
		field := v.Field(m.index)
		// What has a default is written also where it is zero.
		if field.IsZero() && !m.fallback.IsValid() {
			continue
		}
		value, err := encodeValue(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if value.Kind == yaml.ScalarNode && value.Value == "" {
			continue
		}
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, value)
	}
	return node, nil
}

func encodeValue(v reflect.Value) (*yaml.Node, error) {
	if v.Kind() == reflect.Pointer {
		return encodeValue(v.Elem())
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return text(formatDuration(x)), nil
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		return text(string(b)), err
	}
	switch v.Kind() {
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Slice:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			elem, err := encodeValue(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			node.Content = append(node.Content, elem)
		}
		return node, nil
	}
	node := &yaml.Node{}
	return node, node.Encode(v.Interface())
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }
