package runtime

import (
	"errors"
	"fmt"
	"time"

	"carisma.dev/gateway/someip/sd"
)

// Errors of the package. Calls also return the errors of their context and
// *[UnavailableError].
var (
	// ErrTooLarge: the payload exceeds what one UDP message carries (1400
	// bytes, UDP-2) or, on TCP, the configured maximum. Nothing was sent.
	ErrTooLarge = errors.New("runtime: payload too large")
	// ErrClosed: the stack, offering, client or subscription was closed.
	ErrClosed = errors.New("runtime: closed")
	// ErrTimeout: no answer within [NetworkConfig.CallTimeout].
	ErrTimeout = errors.New("runtime: call timed out")
	// ErrBusy: all 65535 session ids of the client wait for an answer.
	ErrBusy = errors.New("runtime: too many outstanding calls")
	// ErrNoTransport: the instance is not offered over the transport asked for.
	ErrNoTransport = errors.New("runtime: not offered over this transport")
	// ErrAnswered: the request was answered before, or takes no answer.
	ErrAnswered = errors.New("runtime: request already answered")
	// ErrUnknownEvent: the offering has no such event.
	ErrUnknownEvent = errors.New("runtime: unknown event")
	// ErrNoClientID: every id of [NetworkConfig.ClientIDs] is in use.
	ErrNoClientID = errors.New("runtime: no free client id")
	// ErrInUse: the instance is already offered on this network, or the port taken.
	ErrInUse = errors.New("runtime: in use")
)

// Reason says why an instance is not available. Its text is meant for people.
type Reason string

// Reasons.
const (
	ReasonNotOffered     Reason = "not offered"
	ReasonStopOffer      Reason = "stopped by its server"
	ReasonTTL            Reason = "offers ceased"
	ReasonReboot         Reason = "its host restarted"
	ReasonEndpointChange Reason = "moved to another endpoint"
	ReasonLinkDown       Reason = "network interface down"
	ReasonConnection     Reason = "connection lost"
	ReasonUnreachable    Reason = "connection failed"
	ReasonRefused        Reason = "subscription refused by its server"
	ReasonMismatch       Reason = "not offered over the transport of the eventgroup"
	ReasonPending        Reason = "not acknowledged yet"
	ReasonClosed         Reason = "closed locally"
	ReasonOtherVersion   Reason = "offered in another minor version"
)

var reasons = map[sd.Reason]Reason{
	sd.ReasonStopped:      ReasonStopOffer,
	sd.ReasonExpired:      ReasonTTL,
	sd.ReasonRebooted:     ReasonReboot,
	sd.ReasonMoved:        ReasonEndpointChange,
	sd.ReasonDisconnected: ReasonConnection,
	sd.ReasonLinkDown:     ReasonLinkDown,
	sd.ReasonWithdrawn:    ReasonClosed,
	sd.ReasonOtherVersion: ReasonOtherVersion,
}

// UnavailableError says that an instance cannot be reached, why, and since when.
type UnavailableError struct {
	Key    InstanceKey
	Reason Reason
	Since  time.Time
	Err    error // what the system said, where it did
}

// Error implements error.
func (e *UnavailableError) Error() string {
	text := fmt.Sprintf("runtime: %v unavailable since %s: %s", e.Key, e.Since.Format(time.RFC3339Nano), string(e.Reason))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }
