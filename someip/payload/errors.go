package payload

import (
	"errors"
	"fmt"
	"strconv"
)

// What is wrong with a payload, a value or a layout. Errors of this package
// wrap one of them.
var (
	ErrMalformed = errors.New("malformed")                      // bytes that no sender may send
	ErrTruncated = fmt.Errorf("%w: truncated", ErrMalformed)    // the bytes end before the value does
	ErrText      = fmt.Errorf("%w: invalid text", ErrMalformed) // not valid in its encoding, or an inner NUL
	ErrRange     = errors.New("out of range")                   // a value that the layout does not allow
	ErrDepth     = errors.New("nested too deep")                // deeper than MaxDepth
	ErrValue     = errors.New("unfit value")                    // a Go value of the wrong type
	ErrLayout    = errors.New("invalid layout")
)

// Error says what is wrong and where.
type Error struct {
	// Path is the place in the model, such as "vents[2].opening"; empty for the
	// whole payload and for the cursors, which know no names.
	Path string
	// Offset is the place in the payload in bytes, -1 for an error of a layout or
	// of a Go value.
	Offset int
	Reason string
	Err    error // one of the Err values of this package
}

// Error implements error.
func (e *Error) Error() string {
	s := "payload: "
	if e.Path != "" {
		s += e.Path + ": "
	}
	s += e.Err.Error()
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Offset >= 0 {
		s += " at byte " + strconv.Itoa(e.Offset)
	}
	return s
}

// Unwrap returns the kind of error.
func (e *Error) Unwrap() error { return e.Err }

func fail(offset int, kind error, format string, args ...any) *Error {
	return &Error{Offset: offset, Err: kind, Reason: fmt.Sprintf(format, args...)}
}

// at prefixes the path of an error with a member name or with an index such as
// "[2]". It makes a path as an error climbs out of nested calls, so that paths
// cost nothing where nothing fails.
func at(err error, step string) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Path = JoinPath(step, e.Path)
	return &c
}

// JoinPath joins a step, a name or an index in brackets, with the path below it.
func JoinPath(step, rest string) string {
	if rest == "" || rest[0] == '[' {
		return step + rest
	}
	return step + "." + rest
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// shift moves an error within a part of a payload to its place in the payload.
func shift(err error, by int) error {
	var e *Error
	if !errors.As(err, &e) || e.Offset < 0 {
		return err
	}
	c := *e
	c.Offset += by
	return &c
}

func reason(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}
