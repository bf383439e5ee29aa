package registry

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reason says why a request was refused. It names the counter too.
type Reason string

// Each reason has a gRPC code of its own, as mesh.proto says, but for three pairs:
// ABORTED means that somebody else is this node now, FAILED_PRECONDITION that the
// node has to begin again, RESOURCE_EXHAUSTED that it wants more than its share.
const (
	NoIdentity   Reason = "no_identity"
	UnknownNode  Reason = "unknown_node"
	Superseded   Reason = "superseded"
	StaleEpoch   Reason = "stale_epoch"
	LeaseExpired Reason = "lease_expired"
	NoDigest     Reason = "no_digest"
	NameTaken    Reason = "name_taken"
	Invalid      Reason = "invalid"
	Full         Reason = "full"
	TooOften     Reason = "too_often"
	DigestLate   Reason = "digest_late"
	Storage      Reason = "storage"
)

// Code returns the gRPC code of the reason.
func (r Reason) Code() codes.Code {
	switch r {
	case NoIdentity:
		return codes.Unauthenticated
	case UnknownNode:
		return codes.NotFound
	case Superseded, StaleEpoch:
		return codes.Aborted
	case LeaseExpired, NoDigest:
		return codes.FailedPrecondition
	case NameTaken:
		return codes.AlreadyExists
	case Invalid:
		return codes.InvalidArgument
	case Full, TooOften:
		return codes.ResourceExhausted
	case DigestLate:
		return codes.DeadlineExceeded
	case Storage:
		return codes.Internal
	}
	return codes.Unknown
}

// Error is the refusal of a request.
type Error struct {
	Reason  Reason
	Message string
}

func newError(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// GRPCStatus makes grpc-go answer with the code of the reason.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Reason.Code(), e.Message) }
