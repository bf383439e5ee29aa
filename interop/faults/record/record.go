// Package record is what the loads of the fault runner write down: each call, and
// each turn of a stream.
package record

import "time"

// OK is the code of a call that succeeded. Others are the names of gRPC codes, or
// the text of an error of a SOME/IP client.
const OK = "OK"

// Call is one unary call.
type Call struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Code   string    `json:"code"`
	Reason string    `json:"reason,omitempty"`
	// Program is the process id of who answered, where the answer says so.
	Program uint32 `json:"program,omitempty"`
}

// Kind is a turn of a stream.
type Kind string

// The turns of a stream.
const (
	Opened Kind = "opened" // asked for
	Item   Kind = "item"
	Ended  Kind = "ended"
)

// Turn is one turn of a stream.
type Turn struct {
	At      time.Time `json:"at"`
	Kind    Kind      `json:"kind"`
	Number  uint32    `json:"number,omitempty"`  // of an item, its field 1
	Gap     uint32    `json:"gap,omitempty"`     // of an item, what it says was lost before it
	Initial bool      `json:"initial,omitempty"` // of an item, the current value of a field
	Code    string    `json:"code,omitempty"`    // of an end
	Reason  string    `json:"reason,omitempty"`  // of an end
}

// Line is a line of a program that is a load itself: one of its members.
type Line struct {
	Call *Call `json:"call,omitempty"`
	Turn *Turn `json:"turn,omitempty"`
}
