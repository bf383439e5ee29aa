package tp

import "fmt"

// Reason says why a segment was dropped or an unfinished message cancelled.
type Reason uint8

// The reasons. Those from Malformed to Gap drop a segment and cancel the message
// that it belongs to.
const (
	NotAllowed  Reason = iota // the method is not configured for TP, or is service discovery (TP-10)
	Stray                     // of a message that is over, or without session and without a beginning (TP-4)
	Duplicate                 // nothing in it was missing (TP-7)
	Malformed                 // empty, or others follow and the length is no multiple of 16 (TP-8)
	TooLong                   // the message exceeds its maximum (TP-8)
	EndMismatch               // the message has two ends, or goes on behind its end (TP-8)
	Overlap                   // bytes came twice and the configuration, or the missing session, forbids it (TP-7)
	Gap                       // a segment is lost: too many came after it, or the last one without session (TP-4)
	Superseded                // another session began (TP-5)
	Restarted                 // the first segment came again (case 28)
	TimedOut                  // nothing new came for too long (TP-8)
	Evicted                   // the oldest had to go to keep the limits (TP-9)
	Forgotten                 // the peer restarted
	reasons
)

var reasonNames = [reasons]string{
	"not allowed", "stray", "duplicate", "malformed", "too long", "end mismatch", "overlap", "gap",
	"superseded", "restarted", "timed out", "evicted", "forgotten",
}

// String returns the name of the reason, fit for a metric.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// DiscardError reports a segment that was dropped.
type DiscardError struct {
	Reason Reason
	Offset uint32 // of the segment in the payload of the message, in bytes
}

// Error implements error.
func (e *DiscardError) Error() string {
	return fmt.Sprintf("tp: segment at byte %d: %v", e.Offset, e.Reason)
}

// Stats counts what a [Reassembler] did. Every segment is either in Dropped or
// became part of a message, and every message that was started is in Completed, in
// Cancelled or in Open.
type Stats struct {
	Segments  uint64          // received
	Dropped   [reasons]uint64 // segments, by Reason
	Started   uint64          // messages of which a segment was taken
	Completed uint64
	Cancelled [reasons]uint64 // messages, by Reason
	Open      int             // messages that are under way
	Bytes     int             // memory of these
}
