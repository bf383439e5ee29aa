package someip

import (
	"errors"
	"fmt"
)

// What can be wrong with the bytes of a message. A *ParseError wraps one of
// them and adds the place.
var (
	ErrShort           = errors.New("not enough bytes")                   // HDR-2
	ErrLength          = errors.New("length field below 8")               // HDR-1
	ErrProtocolVersion = errors.New("unsupported protocol version")       // HDR-3
	ErrMessageType     = errors.New("unknown message type")               // case 10
	ErrReturnCode      = errors.New("return code above 0x5e")             // 1.4
	ErrTooLong         = errors.New("message too long for its transport") // UDP-2
)

// ParseError reports a message that cannot be used.
type ParseError struct {
	Offset int   // byte from the start of the message at which the fault was seen
	Reason error // one of the Err values of this package, or of the package that parsed
}

// Error implements error.
func (e *ParseError) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Reason) }

// Unwrap returns the reason.
func (e *ParseError) Unwrap() error { return e.Reason }
