package sd

import "errors"

// What can be wrong with a message. Parse wraps them in a *someip.ParseError.
var (
	ErrNotSD         = errors.New("not a service discovery message")
	ErrEntriesLength = errors.New("length of the entries array does not fit")
	ErrOptionsLength = errors.New("length of the options array does not fit")
	ErrOption        = errors.New("malformed option")
	// ErrRange: a value has no place in its field of the message.
	ErrRange = errors.New("value out of range")
)

// What Machine refuses to do.
var (
	ErrConfig  = errors.New("invalid service discovery configuration")
	ErrOffer   = errors.New("invalid offer")
	ErrOffered = errors.New("instance is already offered")
	ErrSub     = errors.New("invalid subscription")
)
