package e2e

import "fmt"

// Status is the verdict of a check (12.4).
type Status uint8

// The verdicts.
const (
	NoNewData     Status = iota // nothing was checked
	OK                          // correct, and the successor of the last message or the first one
	OKSomeLost                  // correct, with a gap of fewer than MaxDelta messages
	Repeated                    // correct, with the counter of the last message
	WrongSequence               // correct, with a gap that is too large: lost, late or replayed
	Error                       // not correct: length, data id, counter or checksum
)

var statusNames = [...]string{"NO_NEW_DATA", "OK", "OK_SOME_LOST", "REPEATED", "WRONG_SEQUENCE", "ERROR"}

// String returns the name of the status, such as "OK_SOME_LOST".
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// Result is what a checker says of one message.
type Result struct {
	Status  Status
	Counter uint32 // of the message; unless NoNewData or Error
	Lost    uint32 // messages missing before this one; with OKSomeLost only
	// Err says what is wrong if the status is Error, else it is nil. It is a
	// *someip.ParseError with an Err value of this package as its reason and an
	// offset from the start of the data or message that was checked.
	Err error
}

// Usable reports whether the data is correct and new: OK or OKSomeLost.
func (r Result) Usable() bool { return r.Status == OK || r.Status == OKSomeLost }
