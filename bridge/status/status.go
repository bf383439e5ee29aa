// Package status is the one error table of the gateway: SOME/IP return code,
// gRPC status and D-Bus error name, each into the others.
//
// The table is total, and what the target cannot say travels in a
// carisma.v1.ErrorDetail: an error that comes back to its own protocol is
// exactly the one that left.
package status

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
)

// Error is a failed call, watch or exposure, whatever protocol it came from.
// It is immutable and may be shared between goroutines.
type Error struct {
	Code    codes.Code
	Message string

	// ReturnCode, Exception and Payload are those of the SOME/IP answer. A
	// ReturnCode of 0 says that the error is not from SOME/IP; Exception is then
	// the form in which the gateway sends it (RC-3): ERROR (0x81) if true, else
	// RESPONSE (0x80).
	ReturnCode someip.ReturnCode
	Exception  bool
	Payload    []byte
	// Application is the interface's name of an application error.
	Application string

	DBusName string // the D-Bus error name, empty if the error is not from D-Bus

	FieldPath string    // the place in the message that does not fit: "vents[2].opening"
	Reason    string    // why the service is unavailable
	Since     time.Time // since when; zero if not known
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// newError returns an error that the gateway itself found. Its form on SOME/IP
// is ERROR: CommonAPI's synchronous calls take a RESPONSE for success (RC-3).
func newError(code codes.Code, message string) *Error {
	return &Error{Code: code, Message: message, Exception: true}
}

// New returns an error that the gateway itself found, without a row of its own
// among the constructors.
func New(code codes.Code, format string, args ...any) *Error {
	return newError(code, fmt.Sprintf(format, args...))
}

// Unavailable says that a service is gone or out of reach, why and since when.
func Unavailable(reason string, since time.Time) *Error {
	message := "service unavailable: " + reason
	if !since.IsZero() {
		message += ", since " + since.UTC().Format(time.RFC3339)
	}
	e := newError(codes.Unavailable, message)
	e.Reason, e.Since = reason, since
	return e
}

// InvalidArgument says that the value at path does not fit the other side.
func InvalidArgument(path, reason string) *Error {
	message := reason
	if path != "" {
		message = path + ": " + reason
	}
	e := newError(codes.InvalidArgument, message)
	e.FieldPath, e.Reason = path, reason
	return e
}

// DeadlineExceeded says that no answer came in time.
func DeadlineExceeded() *Error {
	return newError(codes.DeadlineExceeded, "no answer in time")
}

// DataLoss says that an answer came which cannot be decoded at path.
func DataLoss(path, reason string) *Error {
	message := "undecodable: " + reason
	if path != "" {
		message = "undecodable: " + path + ": " + reason
	}
	e := newError(codes.DataLoss, message)
	e.FieldPath, e.Reason = path, reason
	return e
}

// applicationName returns the name that the interface gives a return code.
func applicationName(code someip.ReturnCode, iface *model.Interface) string {
	if iface == nil || iface.SOMEIP == nil {
		return ""
	}
	for _, e := range iface.SOMEIP.Errors {
		if e.Code == uint8(code) {
			return e.Name
		}
	}
	return ""
}
