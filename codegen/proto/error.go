package proto

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"carisma.dev/gateway/codegen/model"
)

// Error is one mistake in a .proto file.
type Error struct {
	Pos     model.Position
	Message string // what is wrong
	Allowed string // what is allowed, if that is not plain
	Err     error  // the cause outside the file, if any
}

func (e *Error) Error() string {
	s := e.Message
	if e.Pos.File != "" {
		s = e.Pos.String() + ": " + s
	}
	if e.Allowed != "" {
		s += "; allowed: " + e.Allowed
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// reports collects errors. A type that several interfaces use is read for each:
// its mistakes count once.
type reports struct {
	list []*Error
	seen map[Error]bool
}

func (r *reports) add(pos model.Position, allowed, format string, args ...any) {
	e := Error{Pos: pos, Message: fmt.Sprintf(format, args...), Allowed: allowed}
	if r.seen[e] {
		return
	}
	if r.seen == nil {
		r.seen = map[Error]bool{}
	}
	r.seen[e] = true
	r.list = append(r.list, &e)
}

func (r *reports) err() error {
	slices.SortStableFunc(r.list, func(a, b *Error) int { return comparePositions(a.Pos, b.Pos) })
	all := make([]error, len(r.list))
	for i, e := range r.list {
		all[i] = e
	}
	return errors.Join(all...)
}

func comparePositions(a, b model.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
