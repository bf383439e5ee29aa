package vsomeip

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"carisma.dev/gateway/codegen/model"
)

type kind uint8

const (
	scalar kind = iota
	object
	array
)

func (k kind) String() string { return [...]string{"a value", "an object", "an array"}[k] }

// node is a JSON value with its place.
type node struct {
	pos     model.Position
	kind    kind
	text    string // of a scalar: the string, the number or the literal as written
	members []member
	items   []*node
}

type member struct {
	key   string
	pos   model.Position
	value *node
}

func (n *node) member(key string) *node {
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

const maxDepth = 32

// parser builds the tree of a JSON text.
type parser struct {
	file  string
	data  []byte
	lines []int // offsets of their ends
	d     *json.Decoder
}

func parse(file string, data []byte) (*node, error) {
	p := &parser{file: file, data: data, d: json.NewDecoder(bytes.NewReader(data))}
	for i, c := range data {
		if c == '\n' {
			p.lines = append(p.lines, i)
		}
	}
	p.d.UseNumber()
	n, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if at := p.next(); at < len(data) {
		return nil, &Error{Pos: p.pos(at), Message: "text behind the end of the configuration"}
	}
	return n, nil
}

// next is the offset of the token that follows.
func (p *parser) next() int {
	at := int(p.d.InputOffset())
	for at < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) pos(at int) model.Position {
	line, _ := slices.BinarySearch(p.lines, at)
	begin := 0
	if line > 0 {
		begin = p.lines[line-1] + 1
	}
	return model.Position{File: p.file, Line: line + 1, Column: at - begin + 1}
}

// token reads a token and says where it stands.
func (p *parser) token() (json.Token, model.Position, error) {
	at := p.next()
	t, err := p.d.Token()
	if err == nil {
		return t, p.pos(at), nil
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// Within a token the offset is behind the character, between tokens before it.
		if bad := int(syntax.Offset) - 1; bad >= int(p.d.InputOffset()) {
			at = bad
		} else {
			at = p.next()
		}
		return nil, model.Position{}, &Error{Pos: p.pos(at), Message: "no JSON: " + syntax.Error()}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, model.Position{}, &Error{Pos: p.pos(len(p.data)), Message: "no JSON: the text ends too early"}
	}
	return nil, model.Position{}, &Error{Pos: p.pos(at), Message: "no JSON: " + err.Error()}
}

func (p *parser) value(depth int) (*node, error) {
	t, pos, err := p.token()
	if err != nil {
		return nil, err
	}
	n := &node{pos: pos}
	switch t := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, &Error{Pos: pos, Message: "nested too deeply"}
		}
		if t == '[' {
			n.kind = array
			return n, p.items(n, depth)
		}
		n.kind = object
		return n, p.members(n, depth)
	case string:
		n.text = t
	case json.Number:
		n.text = t.String()
	case bool:
		n.text = map[bool]string{true: "true", false: "false"}[t]
	case nil:
		return nil, &Error{Pos: pos, Message: "null is no value"}
	}
	return n, nil
}

func (p *parser) items(n *node, depth int) error {
	for p.d.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, _, err := p.token()
	return err
}

func (p *parser) members(n *node, depth int) error {
	seen := map[string]model.Position{}
	for p.d.More() {
		t, pos, err := p.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder allows nothing else
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if first, ok := seen[key]; ok {
			return &Error{Pos: pos, Message: "key " + quote(key) + " is there twice, first at " + first.String()}
		}
		seen[key] = pos
		n.members = append(n.members, member{key, pos, value})
	}
	_, _, err := p.token()
	return err
}
