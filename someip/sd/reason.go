package sd

import "fmt"

// Reason says why something ended.
type Reason uint8

// Reasons.
const (
	// ReasonStopped: the other side said so (StopOffer, StopSubscribe).
	ReasonStopped Reason = iota + 1
	// ReasonExpired: its time to live passed without renewal.
	ReasonExpired
	// ReasonRebooted: the peer restarted.
	ReasonRebooted
	// ReasonMoved: it goes on at another endpoint.
	ReasonMoved
	// ReasonDisconnected: its TCP connection closed.
	ReasonDisconnected
	// ReasonLinkDown: our network interface went down.
	ReasonLinkDown
	// ReasonWithdrawn: we ended it ourselves (StopOffer, Unsubscribe, Shutdown),
	// or offer the instance ourselves now.
	ReasonWithdrawn
	// ReasonOtherVersion: it is offered in a minor version that is not accepted.
	ReasonOtherVersion
)

var reasonNames = [...]string{
	ReasonStopped: "stopped", ReasonExpired: "expired", ReasonRebooted: "peer restarted",
	ReasonMoved: "moved", ReasonDisconnected: "disconnected", ReasonLinkDown: "link down",
	ReasonWithdrawn: "withdrawn", ReasonOtherVersion: "other version",
}

// String returns the reason in words.
func (r Reason) String() string {
	if r == 0 || int(r) >= len(reasonNames) {
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
	return reasonNames[r]
}
