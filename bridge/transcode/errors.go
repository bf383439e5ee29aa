package transcode

import (
	"errors"
	"fmt"
	"strconv"

	"carisma.dev/gateway/someip/payload"
)

// What keeps a message from being translated.
var (
	ErrRange     = errors.New("value out of range") // it does not fit the other side
	ErrEnum      = errors.New("unknown enum value") // the interface has no such literal
	ErrText      = errors.New("invalid text")       // not valid in its encoding, or an inner NUL
	ErrMalformed = errors.New("malformed message")  // bytes that are not the format they should be
)

// Error says what keeps a message from being translated, and where.
type Error struct {
	Path   string // the place in the model, such as "vents[2].opening"
	Offset int    // the place in the bytes that were read, -1 if it has none
	Reason string // such as "300, 0 to 255 allowed"
	Err    error  // one of the Err values of this package
}

// Error implements error.
func (e *Error) Error() string {
	s := e.Err.Error() + ": " + e.Reason
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	return s
}

// Unwrap returns the kind of error.
func (e *Error) Unwrap() error { return e.Err }

// at adds a step in front of the path as the error climbs out of nested types:
// paths cost nothing where nothing fails.
func (e *Error) at(step string) *Error {
	e.Path = payload.JoinPath(step, e.Path)
	return e
}

func (e *Error) atIndex(i int) *Error { return e.at("[" + strconv.Itoa(i) + "]") }

func malformed(offset int, format string, args ...any) *Error {
	return &Error{Offset: offset, Err: ErrMalformed, Reason: fmt.Sprintf(format, args...)}
}

func outOfRange(offset int, format string, args ...any) *Error {
	return &Error{Offset: offset, Err: ErrRange, Reason: fmt.Sprintf(format, args...)}
}

func truncated(offset, want, left int) *Error {
	return malformed(offset, "truncated: %d bytes left, at least %d needed", left, want)
}

// badText is the error of a string at offset.
func badText(err error, offset int) *Error {
	var e *payload.Error
	if !errors.As(err, &e) {
		return &Error{Offset: offset, Err: ErrText, Reason: err.Error()}
	}
	return &Error{Offset: offset + e.Offset, Err: ErrText, Reason: e.Reason}
}
