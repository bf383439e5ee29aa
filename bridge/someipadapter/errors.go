package someipadapter

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/someip/runtime"
)

// What keeps an element of an interface off SOME/IP.
var (
	errNoID         = errors.New("it has no SOME/IP id")
	errNoEventgroup = errors.New("it is in no eventgroup")
)

// callError says why a request had no answer.
func callError(err error) *status.Error {
	var (
		gone  *runtime.UnavailableError
		known *status.Error
		bad   *runtime.E2EError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &gone):
		return status.Unavailable(string(gone.Reason), gone.Since)
	case errors.As(err, &bad):
		return status.New(codes.DataLoss, "%v", err)
	case errors.Is(err, runtime.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return status.DeadlineExceeded()
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the caller gave up")
	case errors.Is(err, runtime.ErrTooLarge):
		return status.InvalidArgument("", "the message is larger than SOME/IP carries over its transport")
	case errors.Is(err, runtime.ErrNoTransport):
		return status.New(codes.FailedPrecondition, "the instance is not offered over the transport that its interface says")
	case errors.Is(err, runtime.ErrBusy):
		return status.New(codes.ResourceExhausted, "too many calls of the instance are outstanding")
	default:
		return status.New(codes.Unavailable, "%v", err)
	}
}

// requestError says why a request cannot be sent: a value that does not fit, or
// bytes that are no message.
func requestError(err error) *status.Error {
	var at *transcode.Error
	if errors.As(err, &at) {
		return status.InvalidArgument(at.Path, reason(at))
	}
	return status.InvalidArgument("", err.Error())
}

// answerError says why a message that came from SOME/IP cannot be read.
func answerError(err error) *status.Error {
	var at *transcode.Error
	if errors.As(err, &at) {
		return status.DataLoss(at.Path, reason(at))
	}
	return status.DataLoss("", err.Error())
}

func reason(at *transcode.Error) string {
	if at.Reason == "" {
		return at.Err.Error()
	}
	return fmt.Sprintf("%v: %s", at.Err, at.Reason)
}
