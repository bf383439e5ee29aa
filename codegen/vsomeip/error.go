package vsomeip

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"carisma.dev/gateway/codegen/model"
)

// Error is one mistake in a configuration.
type Error struct {
	Pos     model.Position
	Message string // what is wrong
	Allowed string // what is allowed, if that is not plain
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Pos.String() + ": " + e.Message
	if e.Allowed != "" {
		s += "; allowed: " + e.Allowed
	}
	return s
}

// reports collects errors.
type reports []*Error

func (r *reports) add(pos model.Position, allowed, format string, args ...any) {
	*r = append(*r, &Error{Pos: pos, Message: fmt.Sprintf(format, args...), Allowed: allowed})
}

// err joins the errors in the order of the files.
func (r reports) err() error {
	slices.SortStableFunc(r, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	all := make([]error, len(r))
	for i, e := range r {
		all[i] = e
	}
	return errors.Join(all...)
}
